{#- Makes the tables that are not there, empty, and adds columns that are new to those that are. -#}
{% macro refresh_make_tables(load) -%}
    {%- set tables = load.tables -%}
    {%- do load.update(are_tables_ready=true) -%}
    {%- for name in ['batches', 'history', 'hub'] if name != 'history' or load.settings.type in ('key', 'full') -%}
        {%- if load_relation(tables[name]) is none -%}
            {%- set nothing -%}
                select
                    {% for column in load.columns %}{{ column.quoted }}, {% endfor %}
                    {% for column, type in heartbeat.refresh_system_columns(load.settings, name).items() -%}
                    cast(null as {{ type }}) as {{ column }}{{ ", " if not loop.last }}
                    {%- endfor %}
                from {{ tables.staging }}
                where false
            {%- endset -%}
            {%- do heartbeat.refresh_create(load, name, tables[name], nothing) -%}
            {%- do adapter.cache_added(tables[name]) -%}
        {%- else -%}
            {%- do heartbeat.refresh_allow_types(load, tables[name]) -%}
            {%- if name != 'hub' or load.settings.type != 'full' -%}
                {%- do heartbeat.refresh_follow_columns(load, name) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

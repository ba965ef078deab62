{#- Makes the tables that are not there, empty, unless the first batch is about to make them of its rows, and adds columns
    that are new to those that are. -#}
{% macro refresh_make_tables(load, is_first=false) -%}
    {%- set tables = load.tables -%}
    {%- do load.update(are_tables_ready=true) -%}
    {%- for name in ['batches', 'history', 'hub'] if name != 'history' or load.settings.history -%}
        {%- if load_relation(tables[name]) is not none -%}
            {%- do heartbeat.refresh_allow_types(load, tables[name]) -%}
            {%- if name != 'hub' or load.settings.type != 'full' -%}
                {%- do heartbeat.refresh_follow_columns(load, name) -%}
            {%- endif -%}
        {%- elif not is_first -%}
            {%- do heartbeat.refresh_fill(load, name, {'names': load.columns | map(attribute='name'),
                'source': tables.staging ~ " as given where false"}) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

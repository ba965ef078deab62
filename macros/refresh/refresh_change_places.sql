{#- Puts tables that were made beside the real ones in their place: a commit each, the archive last. -#}
{% macro refresh_change_places(load, beside) -%}
    {%- for name in ['history', 'hub', 'batches'] -%}
        {%- if name == 'history' and not load.settings.history -%}
            {%- do run_query("drop table if exists " ~ load.tables.history) -%}
        {%- else -%}
            {%- do heartbeat.refresh_create(load, name, load.tables[name], "select * from " ~ beside.tables[name]) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name in ['history', 'hub', 'batches', 'ledger'] -%}
        {%- do run_query("drop table if exists " ~ beside.tables[name]) -%}
        {%- do adapter.cache_dropped(beside.tables[name]) -%}
    {%- endfor -%}
{%- endmacro %}

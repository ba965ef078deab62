{#- Makes the view of what became of each batch, and makes it again when another version of this package, or other settings, has
    another text for it; the view keeps the hash of its text. -#}
{% macro refresh_make_metrics(load) -%}
    {%- set metrics, query, property = load.tables.metrics, heartbeat.refresh_metrics(load), "heartbeat.text" -%}
    {%- set hash = "md5 " ~ local_md5(query) -%}
    {%- if load_relation(metrics) is not none -%}
        {%- set told = heartbeat.rows_of("show tblproperties " ~ metrics ~ " ('" ~ property ~ "')", 2) -%}
        {%- if told and told[0][1] == hash -%}
            {%- do return('') -%}
        {%- endif -%}
    {%- endif -%}
    {%- do run_query("create or replace view " ~ metrics ~ " tblproperties ('" ~ property ~ "' = '" ~ hash ~ "') as " ~ query) -%}
    {%- do adapter.cache_added(metrics) -%}
{%- endmacro %}

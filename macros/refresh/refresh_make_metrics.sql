{#- Makes the view of what became of each batch, unless it is there. -#}
{% macro refresh_make_metrics(load) -%}
    {%- set metrics = load.tables.metrics -%}
    {%- if load_relation(metrics) is none -%}
        {%- do run_query("create or replace view " ~ metrics ~ " as " ~ heartbeat.refresh_metrics(load)) -%}
        {%- do adapter.cache_added(metrics) -%}
    {%- endif -%}
{%- endmacro %}

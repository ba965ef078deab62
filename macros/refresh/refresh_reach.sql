{#- Which part of the hub a batch has to do with, in words. -#}
{% macro refresh_reach(load, batch) -%}
    {%- if load.settings.type == 'key' -%}
        {%- set keys = heartbeat.refresh_names(load.settings.key) -%}
        {%- set query -%}
            select count(*) from (select distinct {{ keys }} from {{ load.tables.batches }}
            where s_input_id = {{ batch.id }} and s_record_status_code <> 'R')
        {%- endset -%}
        {%- do return(heartbeat.rows_of(query)[0][0] ~ " keys") -%}
    {%- elif load.settings.column and batch.range_from is not none -%}
        {%- do return("where " ~ heartbeat.refresh_in_range(load.settings, batch)) -%}
    {%- endif -%}
    {%- do return(batch.record_count ~ " rows") -%}
{%- endmacro %}

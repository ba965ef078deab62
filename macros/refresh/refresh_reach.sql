{#- Which part of the hub a batch has to do with, in words. -#}
{% macro refresh_reach(load, batch) -%}
    {%- if load.settings.type == 'key' -%}
        {%- set keys = heartbeat.refresh_keys_of_batch(load, batch) -%}
        {%- do return(heartbeat.rows_of("select count(*) from (" ~ keys ~ ")")[0][0] ~ " keys") -%}
    {%- elif load.settings.column and batch.range_from is not none -%}
        {%- do return("where " ~ heartbeat.refresh_in_range(load.settings, batch)) -%}
    {%- endif -%}
    {%- do return(batch.record_count ~ " rows") -%}
{%- endmacro %}

{#- Brings batches in together, those of the staging table: the ledger has their numbers (`CLAIMED`), which no other run can take then,
    their rows go with their codes into the archive, the ledger says so (`STAGED`), and hub and history follow. -#}
{% macro refresh_bring(load, batches) -%}
    {%- if batches -%}
        {%- if not load.are_tables_ready -%}
            {%- do heartbeat.refresh_make_tables(load, heartbeat.refresh_is_first(load, batches[0])) -%}
        {%- endif -%}
        {%- if not load.is_replay -%}
            {%- do heartbeat.refresh_record(load, batches, 'CLAIMED') -%}
        {%- endif -%}
        {%- do heartbeat.refresh_archive(load, batches) -%}
        {%- do heartbeat.refresh_record(load, batches, 'STAGED') -%}
        {%- do heartbeat.refresh_finish(load, batches, false) -%}
    {%- endif -%}
{%- endmacro %}

{#- Takes one batch from the staging table up to the end: finds out what to do with it (`STAGED`: that is in the
    ledger, and its rows in the archive with their codes), and does it. -#}
{% macro refresh_take(load, batch) -%}
    {%- do load.update(received_at=batch.received_at) -%}
    {%- set reason = heartbeat.refresh_reason_to_skip(load, batch) -%}
    {%- if reason is not none -%}
        {%- do heartbeat.refresh_record(load, batch, reason) -%}
    {%- else -%}
        {%- set refusal = heartbeat.refresh_refusal(load, batch) -%}
        {%- if refusal is not none -%}
            {%- do heartbeat.refresh_record(load, batch, 'FAILED', refusal) -%}
            {%- do run_query("drop table if exists " ~ load.tables.staging) -%}
            {%- do exceptions.raise_compiler_error(load.name ~ ": batch " ~ batch.id ~ " is refused: " ~ refusal) -%}
        {%- endif -%}
        {%- if not load.are_tables_ready -%}
            {%- do heartbeat.refresh_make_tables(load, heartbeat.refresh_is_first(load, batch)) -%}
        {%- endif -%}
        {%- do heartbeat.refresh_archive(load, batch) -%}
        {%- do heartbeat.refresh_record(load, batch, 'STAGED') -%}
        {%- do heartbeat.refresh_finish(load, batch, false) -%}
    {%- endif -%}
    {%- do load.batches.append(batch) -%}
{%- endmacro %}

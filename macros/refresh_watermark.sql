{#- How far a refresh model has come by its date or number, as SQL for the query that reads what is new: the ledger
    knows it, so that no table is scanned. The comment names the step of the ledger that was read, which the run checks. -#}
{% macro refresh_watermark(initial, overlap=none, time_zone=none) -%}
    {#- A unit test of dbt has neither settings nor a ledger: it sees the first run. -#}
    {%- set is_real = execute and model.resource_type != 'unit_test' -%}
    {%- set settings = heartbeat.refresh_settings(model) if is_real else {'column': true} -%}
    {%- set is_number = (initial is number) if settings.watermark or not is_real else settings.type == 'sequence' -%}
    {%- if not (is_number or settings.watermark or settings.column or settings.updated_at or settings.extracted_at) -%}
        {%- do exceptions.raise_compiler_error(
            model.name ~ ": refresh_watermark needs a date or a number in meta.refresh: updated_at, extracted_at or column, or, for "
            ~ "any type, watermark, which names a column for it alone") -%}
    {%- endif -%}
    {%- set ledger = heartbeat.refresh_tables(this).ledger if is_real -%}
    {%- set batches = [] -%}
    {%- if is_real and load_relation(ledger) is not none -%}
        {%- do batches.extend(heartbeat.refresh_ledger_batches(ledger, heartbeat.refresh_names_of(ledger))) -%}
    {%- endif -%}
    {%- set reached = heartbeat.refresh_reached(settings, batches, is_number) -%}
    {%- set read = " /* batch log at step " ~ (batches | map(attribute='step') | max if batches else 0) ~ " */" if is_real else "" -%}
    {%- if is_number -%}
        {%- do return((reached - (overlap or 0) | int if reached is not none else initial) ~ read) -%}
    {%- endif -%}
    {%- set instant = "timestamp_micros(" ~ reached ~ ")" if reached is not none else "timestamp'" ~ initial ~ "'" -%}
    {%- set instant = "(" ~ instant ~ " - interval '" ~ overlap ~ "')" if reached is not none and overlap else instant -%}
    {%- if time_zone -%}
        {%- set instant = "convert_timezone(current_timezone(), '" ~ time_zone ~ "', cast(" ~ instant ~ " as timestamp_ntz))" -%}
    {%- endif -%}
    {%- do return(instant ~ read) -%}
{%- endmacro %}

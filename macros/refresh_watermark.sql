{#- How far a refresh model has come by its date or number, as SQL for the query that reads what is new: the ledger
    knows it, so that no table is scanned. -#}
{% macro refresh_watermark(initial, overlap=none, time_zone=none) -%}
    {#- A unit test of dbt has neither settings nor a ledger: it sees the first run. -#}
    {%- set is_real = execute and model.resource_type != 'unit_test' -%}
    {%- set kind = {'type': 'sequence' if initial is number else 'timestamp', 'column': true} -%}
    {%- set settings = heartbeat.refresh_settings(model) if is_real else kind -%}
    {%- set is_number = settings.type == 'sequence' -%}
    {%- if not (is_number or settings.column or settings.updated_at or settings.extracted_at) -%}
        {%- do exceptions.raise_compiler_error(
            model.name ~ ": refresh_watermark needs a date or a number in meta.refresh: updated_at, extracted_at or column") -%}
    {%- endif -%}
    {%- set ledger = heartbeat.refresh_tables(this).ledger if is_real -%}
    {%- set reached = [] -%}
    {%- if is_real and load_relation(ledger) is not none -%}
        {%- for batch in heartbeat.refresh_ledger_batches(ledger)
            if batch.state in ('COMPLETE', 'STAGED') and batch.range_to is not none -%}
            {%- do reached.append(batch.range_to | int) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if is_number -%}
        {%- do return((reached | max - (overlap or 0) | int) if reached else initial) -%}
    {%- endif -%}
    {%- set instant = "timestamp_micros(" ~ reached | max ~ ")" if reached else "timestamp'" ~ initial ~ "'" -%}
    {%- set instant = "(" ~ instant ~ " - interval '" ~ overlap ~ "')" if reached and overlap else instant -%}
    {%- if time_zone -%}
        {%- set instant = "convert_timezone(current_timezone(), '" ~ time_zone ~ "', cast(" ~ instant ~ " as timestamp_ntz))" -%}
    {%- endif -%}
    {%- do return(instant) -%}
{%- endmacro %}

{#- The watermark of a refresh model, a date or number, as SQL for the query that reads new rows: it is in the batch
    log, so that no table is scanned. The comment names the step of the batch log that was read, which the run checks. -#}
{% macro refresh_watermark(initial, overlap=none, time_zone=none) -%}
    {#- A dbt unit test has neither settings nor a batch log: it is a first run. -#}
    {%- set is_real = execute and model.resource_type != 'unit_test' -%}
    {%- set settings = heartbeat._refresh_settings(model) if is_real else {'column': true} -%}
    {%- set is_number = (initial is number) if settings.watermark or not is_real else settings.type == 'sequence' -%}
    {%- if not (is_number or settings.watermark or settings.column or settings.updated_at or settings.extracted_at) -%}
        {%- do exceptions.raise_compiler_error(
            model.name ~ ": refresh_watermark needs a date or a number in meta.refresh: updated_at, extracted_at or column, or, for "
            ~ "any type, watermark, which names a column for it alone") -%}
    {%- endif -%}
    {%- set ledger = heartbeat._refresh_tables(this).ledger if is_real -%}
    {%- set batches = [] -%}
    {%- if is_real and load_relation(ledger) is not none -%}
        {%- do batches.extend(heartbeat._refresh_logged_batches(ledger, heartbeat._refresh_column_names(ledger))) -%}
    {%- endif -%}
    {%- set reached = heartbeat._refresh_reached_watermark(settings, batches, is_number) -%}
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

{#- The greatest date, in microseconds since 1970, or number of the batches in effect; none if there is none. -#}
{% macro _refresh_reached_watermark(settings, batches, is_number) -%}
    {%- set reached = [] -%}
    {%- for batch in batches if batch.state in ('COMPLETE', 'STAGED') -%}
        {%- set value = batch.watermark if settings.watermark else batch.range_to -%}
        {%- if value is not none and settings.watermark and (' us' in value) == is_number -%}
            {%- do exceptions.raise_compiler_error(
                model.name ~ ": refresh_watermark begins with " ~ ("a number" if is_number else "a date") ~ ", but the column "
                ~ settings.watermark ~ " has " ~ ("dates" if is_number else "numbers") ~ ": give initial as one of those") -%}
        {%- elif value is not none -%}
            {%- do reached.append(value | replace(' us', '') | int) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(reached | max if reached else none) -%}
{%- endmacro %}

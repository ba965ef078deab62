{#- The greatest date, in microseconds since 1970, or number that the batches of a ledger have which count; none if there is none. -#}
{% macro refresh_reached(settings, batches, is_number) -%}
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

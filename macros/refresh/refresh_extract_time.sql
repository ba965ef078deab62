{#- When a complete extract was taken, as SQL: what its rows say, or when it was received. -#}
{% macro refresh_extract_time(settings, batch) -%}
    {%- if settings.extracted_at -%}
        timestamp_micros({{ batch.range_to }})
    {%- else -%}
        timestamp'{{ batch.received_at }}'
    {%- endif -%}
{%- endmacro %}

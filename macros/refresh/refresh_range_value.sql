{#- What a range is made of, as a number: microseconds since 1970, or the sequence itself; NULL for other types. -#}
{% macro refresh_range_value(settings) -%}
    {%- if settings.type == 'key' and (settings.updated_at or settings.extracted_at) -%}
        cast(unix_micros(s_update_timestamp) as decimal(38, 0))
    {%- elif settings.type == 'timestamp' or settings.extracted_at -%}
        cast(unix_micros(s_timestamp) as decimal(38, 0))
    {%- elif settings.type == 'sequence' -%}
        s_sequence
    {%- else -%}
        cast(null as decimal(38, 0))
    {%- endif -%}
{%- endmacro %}

{#- An instant read from a column that the settings name; NULL when there is none to be read. -#}
{% macro refresh_time(settings, column) -%}
    {%- set quoted = adapter.quote(column) -%}
    {%- if settings.format -%}
        {%- set read = "try_to_timestamp(cast(" ~ quoted ~ " as string), " ~ heartbeat.seed_literal(settings.format, 'string') ~ ")" -%}
    {%- else -%}
        {%- set read = "try_cast(" ~ quoted ~ " as timestamp)" -%}
    {%- endif -%}
    {{ heartbeat.refresh_zoned(settings, read) }}
{%- endmacro %}

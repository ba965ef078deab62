{#- A condition: the rows of two tables have the same key. -#}
{% macro refresh_same_key(settings, one, other) -%}
    {%- set equals = "<=>" if settings.null_keys == 'match' else "=" -%}
    {%- for column in settings.key -%}
        {{ one }}.{{ adapter.quote(column) }} {{ equals }} {{ other }}.{{ adapter.quote(column) }}{{ " and " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

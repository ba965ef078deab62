{#- One cell of a seed as a SQL literal of its column's type. -#}
{% macro seed_literal(value, type) -%}
    {%- if value is none -%}
        null
    {%- else -%}
        {%- set text = value | string | replace("\\", "\\\\") | replace("'", "\\'") -%}
        {%- if type == 'string' -%}
            '{{ text }}'
        {%- else -%}
            cast('{{ text }}' as {{ type }})
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

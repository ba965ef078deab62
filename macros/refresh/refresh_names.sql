{#- Quoted names of columns, with commas between. -#}
{% macro refresh_names(columns, qualifier=none) -%}
    {%- for column in columns -%}
        {{ qualifier ~ "." if qualifier }}{{ adapter.quote(column) }}{{ ", " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

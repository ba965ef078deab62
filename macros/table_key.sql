{#- A table's name as a number to join by: all spellings of one table have the same. -#}
{% macro table_key(name) -%}
    xxhash64({{ table_spelling(name) }})
{%- endmacro %}

{#- A condition: the row is of one of some batches. -#}
{% macro refresh_of_batches(batches) -%}
    {%- do return("s_input_id in (" ~ batches | map(attribute='id') | join(", ") ~ ")") -%}
{%- endmacro %}

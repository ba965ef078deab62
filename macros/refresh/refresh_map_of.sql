{#- Counts by code as a map in SQL. -#}
{% macro refresh_map_of(counts) -%}
    {%- set items = [] -%}
    {%- for code, count in counts.items() -%}
        {%- do items.append("'" ~ code ~ "', " ~ count) -%}
    {%- endfor -%}
    {%- do return("map(" ~ items | join(", ") ~ ")") -%}
{%- endmacro %}

{#- The types that a table has for its own columns, by their names in lower case. -#}
{% macro refresh_types_there(relation) -%}
    {%- set there = {} -%}
    {%- for column in heartbeat.refresh_columns_of(relation) -%}
        {%- do there.update({column.name | lower: column.type}) -%}
    {%- endfor -%}
    {%- do return(there) -%}
{%- endmacro %}

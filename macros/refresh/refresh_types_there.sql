{#- The types that a table has for its own columns, by their names in lower case. -#}
{% macro refresh_types_there(load, relation) -%}
    {%- set there = {} -%}
    {%- for column in heartbeat.refresh_columns_of(load, relation) -%}
        {%- do there.update({column.name | lower: column.type}) -%}
    {%- endfor -%}
    {%- do return(there) -%}
{%- endmacro %}

{#- Select items that fill a table of the refresh from rows that may lack columns of it, in the table's own order. -#}
{% macro refresh_values_for(load, relation, given, qualifier) -%}
    {%- set names = given | map('lower') | list -%}
    {%- for column in heartbeat.refresh_shape(load, relation) -%}
        {%- if column.name | lower in names -%}
            {{ qualifier }}.{{ column.quoted }}
        {%- else -%}
            cast(null as {{ column.type }}) as {{ column.quoted }}
        {%- endif -%}
        {{ ", " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

{#- Select items that fill a table of the refresh from rows that may lack columns of it, in the table's own order; `values`
    says what fills a column that is not filled by its like. -#}
{% macro refresh_values_for(load, relation, given, qualifier, values={}) -%}
    {%- set names = given | map('lower') | list -%}
    {%- for column in heartbeat.refresh_shape(load, relation) -%}
        {%- if column.name in values -%}
            {{ values[column.name] }} as {{ column.quoted }}
        {%- elif column.name | lower in names -%}
            {{ qualifier }}.{{ column.quoted }}
        {%- else -%}
            cast(null as {{ column.type }}) as {{ column.quoted }}
        {%- endif -%}
        {{ ", " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

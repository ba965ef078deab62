{#- Select items that fill a table of the refresh from rows that may lack columns of it, in the table's own order. -#}
{% macro refresh_values_for(relation, given, qualifier) -%}
    {%- set names = given | map('lower') | list -%}
    {%- for name, type in heartbeat.rows_of("describe query select * from " ~ relation, 2) -%}
        {%- if name | lower in names -%}
            {{ qualifier }}.{{ adapter.quote(name) }}
        {%- else -%}
            cast(null as {{ type }}) as {{ adapter.quote(name) }}
        {%- endif -%}
        {{ ", " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

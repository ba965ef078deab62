{#- The rows of a query as lists of so many values; what dbt makes of an answer depends on the adapter. -#}
{% macro rows_of(query, width=1) -%}
    {%- set rows = [] -%}
    {%- for row in run_query(query).rows -%}
        {%- do rows.append((row.values() | list)[:width]) -%}
    {%- endfor -%}
    {%- do return(rows) -%}
{%- endmacro %}

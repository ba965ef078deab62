{#- What a Delta table is known by as long as nobody makes it anew; a restored table has that of its older state. -#}
{% macro delta_table_id(relation) -%}
    {%- do return(run_query("describe detail " ~ relation).rows[0]['id'] | string) -%}
{%- endmacro %}

{#- The table beside a model's own that says which partitions the model has taken. -#}
{% macro record_of_partitions(target_table) -%}
    {%- do return(api.Relation.create(
        database=target_table.database, schema=target_table.schema, identifier=target_table.identifier ~ '_taken',
        type='table')) -%}
{%- endmacro %}

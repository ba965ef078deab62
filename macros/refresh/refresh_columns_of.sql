{#- The columns of a table that are the model's own, with name, quoted name and type. -#}
{% macro refresh_columns_of(load, relation) -%}
    {%- do return(heartbeat.refresh_shape(load, relation)
        | rejectattr('name', 'in', heartbeat.refresh_reserved_names()) | list) -%}
{%- endmacro %}

{#- The columns of a table that are the model's own, with name, quoted name and type. -#}
{% macro refresh_columns_of(relation) -%}
    {%- set columns = [] -%}
    {%- for name, type in heartbeat.rows_of("describe query select * from " ~ relation, 2)
        if name not in heartbeat.refresh_reserved_names() -%}
        {%- do columns.append({'name': name, 'quoted': adapter.quote(name), 'type': type}) -%}
    {%- endfor -%}
    {%- do return(columns) -%}
{%- endmacro %}

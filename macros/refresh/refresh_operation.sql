{#- What an operation on a refresh model starts from: its load, with the columns that its archive has. Operations name a
    model as dbt does. -#}
{% macro refresh_operation(model_name) -%}
    {%- set node = heartbeat.refresh_node(model_name) -%}
    {%- set hub = api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias, type='table') -%}
    {%- set load = heartbeat.refresh_load(node, hub) -%}
    {%- if load_relation(load.tables.batches) is none -%}
        {%- do exceptions.raise_compiler_error("refresh: " ~ model_name ~ " has no batches yet: run the model first") -%}
    {%- endif -%}
    {%- do load.update(columns=heartbeat.refresh_columns_of(load, load.tables.batches), is_operation=true) -%}
    {%- do return(load) -%}
{%- endmacro %}

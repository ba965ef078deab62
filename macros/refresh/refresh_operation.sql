{#- What an operation on a refresh model starts from: its load, with the columns that its archive has. Operations name a
    model as dbt does. -#}
{% macro refresh_operation(model_name) -%}
    {%- set found = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'refresh'
        and model_name in (node.name, node.package_name ~ "." ~ node.name) -%}
        {%- do found.append(node) -%}
    {%- endfor -%}
    {%- if not found -%}
        {%- set known = graph.nodes.values() | selectattr('config.materialized', 'equalto', 'refresh')
            | map(attribute='name') | sort -%}
        {%- do exceptions.raise_compiler_error(
            "refresh: " ~ model_name ~ " is no model that is materialized as refresh; those are "
            ~ (known | join(", ") or "none")) -%}
    {%- endif -%}
    {%- set node = found[0] -%}
    {%- set hub = api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias, type='table') -%}
    {%- set load = heartbeat.refresh_load(node, hub) -%}
    {%- if load_relation(load.tables.batches) is none -%}
        {%- do exceptions.raise_compiler_error("refresh: " ~ model_name ~ " has no batches yet: run the model first") -%}
    {%- endif -%}
    {%- do load.update(columns=heartbeat.refresh_columns_of(load, load.tables.batches), is_operation=true) -%}
    {%- do return(load) -%}
{%- endmacro %}

{#- Copies hub, history, archive and ledger of a refresh model from another schema to where the target has the model, each by
    Delta's shallow clone, which is what `dbt clone` does with the hub alone. -#}
{% macro refresh_clone(model, from_schema, replace=false, dry_run=false) -%}
    {%- set node = heartbeat.refresh_node(model) -%}
    {%- set settings = heartbeat.refresh_settings(node) -%}
    {%- set hubs = [] -%}
    {%- for schema in [from_schema, node.schema] -%}
        {%- do hubs.append(api.Relation.create(
            database=node.database, schema=schema, identifier=node.alias, type='table')) -%}
    {%- endfor -%}
    {%- set there, here = heartbeat.refresh_tables(hubs[0]), heartbeat.refresh_tables(hubs[1]) -%}
    {%- if from_schema == node.schema or load_relation(there.hub) is none or load_relation(there.ledger) is none -%}
        {%- do exceptions.raise_compiler_error(
            "refresh: " ~ model ~ " cannot be copied from the schema " ~ from_schema ~ ", "
            ~ ("which is where it is" if from_schema == node.schema else "which has no such model with its ledger")) -%}
    {%- elif load_relation(here.hub) is not none and not replace -%}
        {%- do exceptions.raise_compiler_error(
            "refresh: " ~ here.hub ~ " is there already; replace: true puts the copy in its place") -%}
    {%- endif -%}
    {%- if not dry_run -%}
        {%- do adapter.create_schema(here.hub.without_identifier()) -%}
    {%- endif -%}
    {%- for name in ['ledger', 'batches', 'history', 'hub'] if load_relation(there[name]) is not none -%}
        {%- do log(model ~ ": " ~ ("would copy " if dry_run else "copying ") ~ there[name] ~ " to " ~ here[name], info=true) -%}
        {%- if not dry_run -%}
            {%- do run_query(create_or_replace_clone(here[name], there[name])) -%}
            {%- do adapter.cache_added(here[name]) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not dry_run -%}
        {%- do heartbeat.refresh_make_ledger(here.ledger) -%}
        {%- do heartbeat.refresh_make_metrics({'settings': settings, 'tables': here}) -%}
    {%- endif -%}
{%- endmacro %}

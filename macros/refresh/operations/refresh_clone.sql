{#- Copies target table, history, batch archive and batch log of a refresh model from another schema to the model's
    own, each by Delta's shallow clone; `dbt clone` copies the target table alone. -#}
{% macro refresh_clone(model, from_schema, replace=false, dry_run=false) -%}
    {%- set node = heartbeat._refresh_node(model) -%}
    {%- set hubs = [] -%}
    {%- for schema in [from_schema, node.schema] -%}
        {%- do hubs.append(api.Relation.create(
            database=node.database, schema=schema, identifier=node.alias, type='table')) -%}
    {%- endfor -%}
    {%- set there, here = heartbeat._refresh_tables(hubs[0]), heartbeat._refresh_tables(hubs[1]) -%}
    {%- set run = heartbeat._refresh_context(here, node) -%}
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
        {%- do heartbeat._refresh_create_batch_log(here.ledger) -%}
        {%- do heartbeat._refresh_create_metrics(run) -%}
    {%- endif -%}
{%- endmacro %}

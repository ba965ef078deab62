{#- The context of a refresh: all that its steps share. A step gets it as `run` and updates it in place; these are all of its
    keys, with the value that each has at first.
    - name: the name of the model; none where only tables are read.
    - config: the config of the model's node; empty where only tables are read.
    - settings: the settings of `meta.refresh`, checked and complete (_refresh_settings).
    - tables: the relations by name: hub (the target table), history, batches (the batch archive), ledger (the batch log), metrics,
      staging and versions (_refresh_tables).
    - columns: the model's own columns, each with name, quoted and type: those of the batch archive when a run or an
      operation begins, those of the query once it is staged.
    - shapes: the columns of each table that was described, by its name; a macro that alters a table removes its entry.
    - batches: the batches in the order of receipt, from the batch log; each one processed in this run is appended.
    - step: the newest step of the batch log, which each commit to it increments.
    - received_at: when the batch that is being processed was received; none before the first.
    - is_operation: whether this is an operation, in which dbt's own `config` is empty, and not a run of the model.
    - is_replay: whether archived batches are processed again, so that duplicates, conflicts and closed periods are accepted.
    - are_tables_ready: whether target table, history and batch archive exist with the columns of this run. -#}
{% macro _refresh_context(tables, node=none) -%}
    {%- do return({
        'name': node.name if node else none,
        'config': node.config if node else {},
        'settings': heartbeat._refresh_settings(node) if node else {},
        'tables': tables,
        'columns': [],
        'shapes': {},
        'batches': [],
        'step': 0,
        'received_at': none,
        'is_operation': false,
        'is_replay': false,
        'are_tables_ready': false,
    }) -%}
{%- endmacro %}

{#- The context at the start of a run, with the batches of its batch log. Each has
    - by the batch log: id, batch (the value of `batch_by`), state, received_at, received_micros, settings, fingerprint, record_count,
      range_from, range_to, watermark, step, and is_vacuumed (its rows have left the batch archive);
    - as a staged batch also, by its rows: rejected, deleted, bounds, and with a declared range is_declared and observed;
    - once it is archived: code_counts and conflict_count, for a key also is_unique and hub_code_counts. -#}
{% macro _refresh_begin(node, hub) -%}
    {%- set run = heartbeat._refresh_context(heartbeat._refresh_tables(hub), node) -%}
    {%- do heartbeat._refresh_create_batch_log(run.tables.ledger) -%}
    {%- do run.batches.extend(heartbeat._refresh_logged_batches(run.tables.ledger)) -%}
    {%- do run.update(step=run.batches | map(attribute='step') | max if run.batches else 0) -%}
    {%- do return(run) -%}
{%- endmacro %}

{#- The context of an operation, which names its model as dbt does, with the columns of its batch archive. -#}
{% macro _refresh_begin_operation(model_name) -%}
    {%- set node = heartbeat._refresh_node(model_name) -%}
    {%- set hub = api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias, type='table') -%}
    {%- set run = heartbeat._refresh_begin(node, hub) -%}
    {%- if load_relation(run.tables.batches) is none -%}
        {%- do exceptions.raise_compiler_error("refresh: " ~ model_name ~ " has no batches yet: run the model first") -%}
    {%- endif -%}
    {%- do run.update(columns=heartbeat._refresh_model_columns(run, run.tables.batches), is_operation=true) -%}
    {%- do return(run) -%}
{%- endmacro %}

{#- The refresh model of a name, with or without its package. -#}
{% macro _refresh_node(model_name) -%}
    {%- set known = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'refresh' -%}
        {%- if model_name in (node.name, node.package_name ~ "." ~ node.name) -%}
            {%- do return(node) -%}
        {%- endif -%}
        {%- do known.append(node.name) -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error(
        "refresh: " ~ model_name ~ " is not a model that is materialized as refresh; those are "
        ~ (known | sort | join(", ") or "none")) -%}
{%- endmacro %}

{#- The tables of a refresh model: the target table, which has the model's name (`hub`), and those beside it. -#}
{% macro _refresh_tables(hub) -%}
    {%- set tables = {'hub': hub.incorporate(type='table')} -%}
    {%- for name, ending in {
        'history': '_history', 'batches': '_batches', 'ledger': '_ledger', 'staging': '__rf_' ~ invocation_id[:8],
        'versions': '__rf_' ~ invocation_id[:8] ~ '_versions', 'metrics': '_metrics'
    }.items() -%}
        {%- do tables.update({name: api.Relation.create(
            database=hub.database, schema=hub.schema, identifier=hub.identifier ~ ending,
            type='view' if name == 'metrics' else 'table')}) -%}
    {%- endfor -%}
    {%- do return(tables) -%}
{%- endmacro %}

{#- The context of the refresh model that a generic test checks. -#}
{% macro _refresh_tested_model(test, relation, type=none) -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'refresh'
        and node.alias == relation.identifier and node.schema == relation.schema -%}
        {%- set run = heartbeat._refresh_context(heartbeat._refresh_tables(relation), node) -%}
        {%- if type and run.settings.type != type -%}
            {%- do exceptions.raise_compiler_error(
                test ~ " is a test for refresh models of type " ~ type ~ ", but " ~ node.name ~ " is of type " ~ run.settings.type) -%}
        {%- endif -%}
        {%- if type == 'key' and not run.settings.history -%}
            {%- do exceptions.raise_compiler_error(
                test ~ " is a test for histories, but " ~ node.name ~ " has none, as history is false") -%}
        {%- endif -%}
        {%- do return(run) -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error(
        test ~ " is a test for refresh models, but " ~ relation ~ " is none") -%}
{%- endmacro %}

{#- Creates missing tables, empty, unless the first batch is about to create them from its rows, and adds new columns
    to existing ones. -#}
{% macro _refresh_create_tables(run, is_first=false) -%}
    {%- set tables = run.tables -%}
    {%- do run.update(are_tables_ready=true) -%}
    {%- for name in ['batches', 'history', 'hub'] if name != 'history' or run.settings.history -%}
        {%- if load_relation(tables[name]) is not none -%}
            {%- do heartbeat._refresh_allow_types(run, tables[name]) -%}
            {%- if name != 'hub' or run.settings.type != 'full' -%}
                {%- do heartbeat._refresh_evolve_columns(run, name) -%}
            {%- endif -%}
        {%- elif not is_first -%}
            {%- do heartbeat._refresh_fill_table(run, name, {'names': run.columns | map(attribute='name'),
                'source': tables.staging ~ " as given where false"}) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Creates or replaces one of the tables of a refresh from a query. A run gives the target table everything in the
    model's config; an operation, to which dbt gives no config, keeps its partitions and properties. -#}
{% macro _refresh_create_table(run, name, relation, query) -%}
    {%- do run.shapes.pop(relation | string, none) -%}
    {%- do adapter.cache_added(relation) -%}
    {%- set is_asked = name == 'hub' and not run.is_operation -%}
    {%- set properties = heartbeat._refresh_table_properties(run, name) -%}
    {%- if is_asked and not run.config.get('contract', {}).enforced -%}
        {%- do run_query(create_table_as(false, relation, query)) -%}
        {%- if properties and run.settings.type == 'key' -%}
            {%- do run_query("alter table " ~ relation ~ " set " ~ properties) -%}
        {%- endif -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set by = ['s_input_id'] if name == 'batches' or name == 'history' and run.settings.type == 'full' else [] -%}
    {%- if name == 'hub' -%}
        {%- set given = run.config.get('partition_by') or [] -%}
        {%- set by = [given] if given is string else given -%}
    {%- endif -%}
    {%- set root = run.config.get('location_root') if is_asked else none -%}
    {%- set rows = "select * from (" ~ query ~ ") where false" if is_asked else query -%}
    {%- do run_query("create or replace table " ~ relation ~ " using delta"
        ~ (" partitioned by (" ~ by | join(", ") ~ ")" if by else "")
        ~ " " ~ properties
        ~ (" location '" ~ root ~ "/" ~ relation.identifier ~ "'" if root else "")
        ~ (" " ~ comment_clause() if is_asked else "") ~ " as " ~ rows) -%}
    {%- if is_asked -%}
        {#- dbt compares the contract with all columns of a table, and a target table has more than the model. The constraints
            precede the first row: a row that violates them must not be in the target table when the next run continues. -#}
        {%- do heartbeat._refresh_add_constraints(relation, model) -%}
        {%- do run_query("insert into " ~ relation ~ " " ~ query) -%}
    {%- endif -%}
{%- endmacro %}

{#- Writes rows to one of the tables in one repeatable commit: in place of those that match a condition, or of all. A
    missing table is created from them. The rows: `source`, what follows `from` with the alias `given`, the `names` of
    their columns, and the `values` that override columns of the same name. -#}
{% macro _refresh_fill_table(run, name, rows, condition=none) -%}
    {%- set relation = run.tables[name] -%}
    {%- set is_there = load_relation(relation) is not none -%}
    {%- if not is_there -%}
        {%- set shape = run.columns | list -%}
        {%- for column, type in heartbeat._refresh_system_columns(run.settings, name).items() -%}
            {%- do shape.append({'name': column, 'quoted': adapter.quote(column), 'type': type}) -%}
        {%- endfor -%}
        {%- do run.shapes.update({relation | string: shape}) -%}
    {%- endif -%}
    {%- set query = "select " ~ heartbeat._refresh_select_items(run, relation, rows.names, 'given', rows.get('values', {}))
        ~ " from " ~ rows.source -%}
    {%- if not is_there -%}
        {%- do heartbeat._refresh_create_table(run, name, relation, query) -%}
    {%- elif condition is none -%}
        {%- do run_query("insert overwrite " ~ relation ~ " " ~ query) -%}
    {%- else -%}
        {%- do run_query("insert into " ~ relation ~ " replace where " ~ condition ~ " " ~ query) -%}
    {%- endif -%}
{%- endmacro %}

{#- The table properties of target table or history: the model's config for the target table, and deletion vectors
    where keys are merged, unless the config sets them. A merge that changes a few rows of a file then does not
    rewrite the file. -#}
{% macro _refresh_table_properties(run, name) -%}
    {%- set given = run.config.get('tblproperties') or {} -%}
    {%- set properties = dict(given) if name == 'hub' else {} -%}
    {%- if run.settings.type == 'key' and name in ('hub', 'history') -%}
        {%- set vectors = 'delta.enableDeletionVectors' -%}
        {%- do properties.update({vectors: given.get(vectors, 'true')}) -%}
    {%- endif -%}
    {%- set items = [] -%}
    {%- for key, value in properties.items() -%}
        {%- do items.append("'" ~ key ~ "' = '" ~ value ~ "'") -%}
    {%- endfor -%}
    {%- do return("tblproperties (" ~ items | join(", ") ~ ")" if items else "") -%}
{%- endmacro %}

{#- Gives a new target table the constraints of its model's contract: `not_null` as a check, since Delta does not
    remove NULLs from an existing column. -#}
{% macro _refresh_add_constraints(relation, node) -%}
    {#- The two adapters' macros of this name take different arguments. -#}
    {%- do alter_table_add_constraints(relation, node if adapter.type() == 'databricks' else node.constraints) -%}
    {%- for name, column in node.columns.items() if 'not_null' in column.constraints | map(attribute='type') | list -%}
        {%- do run_query("alter table " ~ relation ~ " add constraint " ~ adapter.quote(name ~ "_is_not_null") ~ " check ("
            ~ adapter.quote(name) ~ " is not null)") -%}
    {%- endfor -%}
{%- endmacro %}

{#- Rejects a target table without a batch archive: no refresh created it, and the first batch would replace all of
    it. -#}
{% macro _refresh_check_target(run) -%}
    {%- if load_relation(run.tables.hub) is not none and load_relation(run.tables.batches) is none -%}
        {%- do exceptions.raise_compiler_error(
            run.name ~ ": " ~ run.tables.hub ~ " is there without " ~ run.tables.batches ~ ", so no refresh has made it; drop "
            ~ "it or rename it, or, after a dbt clone, which copies the hub alone, copy all tables by heartbeat.refresh_clone") -%}
    {%- endif -%}
{%- endmacro %}

{#- Replaces the real tables by those that were built beside them: one commit each, the batch archive last. -#}
{% macro _refresh_swap_tables(run, beside) -%}
    {%- for name in ['history', 'hub', 'batches'] -%}
        {%- if name == 'history' and not run.settings.history -%}
            {%- do run_query("drop table if exists " ~ run.tables.history) -%}
        {%- else -%}
            {%- do heartbeat._refresh_create_table(run, name, run.tables[name], "select * from " ~ beside.tables[name]) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name in ['history', 'hub', 'batches', 'ledger'] -%}
        {%- do run_query("drop table if exists " ~ beside.tables[name]) -%}
        {%- do adapter.cache_dropped(beside.tables[name]) -%}
    {%- endfor -%}
{%- endmacro %}

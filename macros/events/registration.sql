{#- Rejects invalid arguments of register_change, when dbt parses the project or at the latest when it builds. -#}
{% macro _check_registration(tags, partition, operation) -%}
    {%- if model is not defined or model.resource_type not in ('model', 'seed', 'snapshot') -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: it describes a table that was just built, so it stands in the post_hook of a model, "
            ~ "a seed or a snapshot, and nowhere else") -%}
    {%- endif -%}
    {#- dbt never runs the hooks of an ephemeral model, so this is checked while it parses, before the model has its
        settings. For a view that is too early: a yml may still make it a table. -#}
    {%- set settings = model.config if execute else config.context_config.build_config_dict() -%}
    {%- set kind = settings.materialized -%}
    {%- if kind == 'ephemeral' or execute and kind in ('view', 'materialized_view', 'metric_view') -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: " ~ model.name ~ " is materialized as " ~ kind ~ ", which holds no data of its own to "
            ~ "change: take the post_hook away, or materialize it as table, incremental or snapshot") -%}
    {%- endif -%}
    {%- set operations = ['APPEND', 'DELETE', 'UPDATE'] -%}
    {%- if operation is not none and operation | string | upper not in operations -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: operation is " ~ operation ~ ", but must be one of " ~ operations | join(', ')
            ~ ", or left out") -%}
    {%- endif -%}
    {%- if partition is not none and (partition is string or partition is mapping or partition is not sequence) -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: partition is " ~ partition ~ ", but must be a list with one value for each partition "
            ~ "level, such as ['2026-03-01', 7], or left out") -%}
    {%- endif -%}
    {%- if tags is not none and tags is not mapping -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: tags is " ~ tags ~ ", but must be a mapping of text to text, such as "
            ~ "{'quality': 'checked'}, or left out") -%}
    {%- endif -%}
    {%- for key, value in (tags or {}).items() if key is not string or value is not string -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: the tag " ~ key ~ " is " ~ value ~ ", which is not text: put it in quotes") -%}
    {%- endfor -%}
{%- endmacro %}

{#- The commits of this build that changed data, newest first, and in any case the newest such commit of the table,
    since a build whose hook failed may have made it. Each names its predecessor. -#}
{% macro _commits_of_build(relation, table, partition) -%}
    {%- set began = (run_started_at.timestamp() * 1000) | int -%}
    {%- if table.format == 'HIVE' -%}
        {%- do return(heartbeat._hive_commits(relation, table, began, partition)) -%}
    {%- endif -%}
    {%- if table.format == 'DELTA' -%}
        {#- The versions of a table that was dropped and created again start from the beginning. -#}
        {%- do table.update(table_id=heartbeat._query_rows("describe detail " ~ relation, 2)[0][1]) -%}
    {%- endif -%}
    {%- set found = namespace(commits=[], is_enough=false) -%}
    {%- for count in [20, 1000] -%}
        {%- if not found.is_enough -%}
            {%- if table.format == 'DELTA' -%}
                {%- set commits = heartbeat._delta_commits(relation, table, count) -%}
            {%- else -%}
                {%- set commits = heartbeat._iceberg_commits(relation, count) -%}
            {%- endif -%}
            {%- set found.commits = commits | selectattr('operation', 'defined') | list -%}
            {%- set earlier = found.commits[1:] | selectattr('snapshot_ts', 'lt', began) | list -%}
            {%- set found.is_enough = earlier or commits | length < count -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set linked = [] -%}
    {%- for commit in found.commits -%}
        {%- if loop.first or commit.snapshot_ts >= began -%}
            {%- set before = loop.nextitem.snapshot_id if not loop.last else none -%}
            {%- do linked.append(dict(commit, prev_snapshot_id=before)) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(linked) -%}
{%- endmacro %}

{#- One data-change event, with the fields that a producer sets; the tick that ingests it sets the time. -#}
{% macro _event_of_commit(commit, table, tags, partition) -%}
    {%- set found = commit.get('partitions', []) | select | list -%}
    {%- set is_one = found | length == 1 and not commit.get('is_truncated') -%}
    {%- set found_tags = {'dbt_model': model.unique_id} -%}
    {%- for key in ['operation_name', 'overwrite', 'replaced'] if commit.get(key) -%}
        {%- do found_tags.update({key | replace('_name', ''): commit[key]}) -%}
    {%- endfor -%}
    {%- if table.table_id is defined -%}
        {%- do found_tags.update(table_id=table.table_id) -%}
    {%- endif -%}
    {%- if partition is none -%}
        {%- do found_tags.update(heartbeat._partition_tags([] if is_one else found, commit.get('is_truncated'))) -%}
    {%- endif -%}
    {%- set given = none if partition is none else heartbeat._partition_argument(partition, table) -%}
    {%- do return({
        'table': table.name,
        'partition': found[0] if is_one and partition is none else given,
        'snapshot_id': commit.get('snapshot_id'),
        'snapshot_ts': commit.get('snapshot_ts'),
        'prev_snapshot_id': commit.get('prev_snapshot_id'),
        'table_format': table.format,
        'operation_type': commit.operation,
        'tags': dict(tags or {}, **found_tags),
        'event_id': none if commit.get('snapshot_id') else local_md5(invocation_id ~ model.unique_id),
    }) -%}
{%- endmacro %}

{#- The partition argument of a model, one JSON value for each level, as text. -#}
{% macro _partition_argument(partition, table) -%}
    {%- set levels = table.partition_columns -%}
    {%- if partition | length != levels | length and (levels or table.format != 'ICEBERG') -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: partition has " ~ partition | length ~ " values, but " ~ table.name ~ " has "
            ~ levels | length ~ " partition levels (" ~ levels | map(attribute='name') | join(', ')
            ~ "): give one value for each") -%}
    {%- endif -%}
    {%- set values = [] -%}
    {%- for value in partition -%}
        {%- if value is none or value is boolean or value is number -%}
            {%- do values.append(tojson(value)) -%}
        {%- else -%}
            {#- dbt's tojson writes letters beyond ASCII as escapes, and the sensors do not. -#}
            {%- set text = value | string | replace("\\", "\\\\") | replace('"', '\\"') -%}
            {%- do values.append('"' ~ text ~ '"') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(values) -%}
{%- endmacro %}

{#- The tags that list several partitions: no more than the sensors list, and than fit into a tag. -#}
{% macro _partition_tags(partitions, is_truncated) -%}
    {%- set kept = namespace(rows=[], characters=0) -%}
    {%- for values in partitions[:1000] -%}
        {%- set row = '[' ~ values | join(',') ~ ']' -%}
        {%- set kept.characters = kept.characters + row | length + 1 -%}
        {%- if kept.characters < 65000 -%}
            {%- do kept.rows.append(row) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set tags = {} -%}
    {%- if kept.rows -%}
        {%- do tags.update(partitions='[' ~ kept.rows | join(',') ~ ']') -%}
    {%- endif -%}
    {%- if is_truncated or kept.rows | length < partitions | length -%}
        {%- do tags.update(partitions_truncated='true') -%}
    {%- endif -%}
    {%- do return(tags) -%}
{%- endmacro %}

{#- The statement that leaves events in the inbox, once however often it is sent. In a workspace the inbox is a table.
    Locally it is a folder: SQL cannot write a single file there, so a batch is a folder below it, which is complete
    once Spark has added `_SUCCESS`, and which the tick ingests only then. -#}
{% macro _write_to_inbox(events) -%}
{%- set listed = tojson(events) -%}
{%- set name = invocation_id ~ "-" ~ local_md5(model.unique_id ~ listed)[:12] -%}
{%- if target.type == 'spark' -%}
{%- set type -%}
    array<struct<
        `table`: string, `partition`: array<string>, snapshot_id: string, snapshot_ts: bigint,
        prev_snapshot_id: string, table_format: string, operation_type: string,
        tags: map<string, string>, event_id: string
    >>
{%- endset -%}
insert overwrite directory {{ heartbeat._sql_literal(heartbeat._inbox() ~ "/registered-" ~ name, 'string') }}
using json
select inline(from_json({{ heartbeat._sql_literal(listed, 'string') }}, '{{ type }}'))
{%- else -%}
{%- set lines = [] -%}
{%- for event in events -%}
    {%- do lines.append(tojson(event)) -%}
{%- endfor -%}
insert into {{ heartbeat._inbox() }} (message_id, kind, content)
values ('{{ name }}', 'events', {{ heartbeat._sql_literal(lines | join("\n"), 'string') }})
{%- endif -%}
{%- endmacro %}

{#- The inbox that the next tick reads: a folder, or a table of a workspace. Another project has a state directory and
    a schema of its own, so only environment variables or a dbt variable can name it. -#}
{% macro _inbox() -%}
    {%- set is_local = target.type == 'spark' -%}
    {%- set is_ours = project_name == 'heartbeat' -%}
    {%- if is_local -%}
        {%- set home = env_var('HEARTBEAT_HOME', '.heartbeat' if is_ours else '') -%}
        {%- set found = home ~ '/inbox' if home else '' -%}
    {%- else -%}
        {%- set catalog = target.database if is_ours else env_var('HEARTBEAT_CATALOG', '') -%}
        {%- set schema = target.schema if is_ours else env_var('HEARTBEAT_SCHEMA', 'heartbeat') -%}
        {%- set found = '`' ~ catalog ~ '`.`' ~ schema ~ '`.`inbox`' if catalog else '' -%}
    {%- endif -%}
    {%- set inbox = var('heartbeat_inbox', found) -%}
    {%- if not inbox -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: the inbox of Heartbeat is not configured: set the variable heartbeat_inbox to the "
            ~ ("folder, or the environment variable HEARTBEAT_HOME to the harness's own" if is_local
            else "table, such as `prod-eu`.heartbeat.inbox, or the environment variable HEARTBEAT_CATALOG to the "
            ~ "harness's own")) -%}
    {%- endif -%}
    {%- do return(inbox.rstrip('/')) -%}
{%- endmacro %}

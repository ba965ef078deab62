{#- The newest commits of a Delta table, newest first: from its log files where these can be read, as in the sensor,
    else from the table's history, which has no partitions. -#}
{% macro _delta_commits(relation, table, count) -%}
    {%- set is_by_catalog = 'catalogManaged' in table.properties or 'catalogOwned' in table.properties -%}
    {%- if is_by_catalog or not var('heartbeat_reads_delta_log', target.type != 'databricks') -%}
        {%- do return(heartbeat._delta_commits_by_history(relation, count)) -%}
    {%- endif -%}
    {%- set newest = heartbeat._query_rows("describe history " ~ relation ~ " limit 1")[0][0] | int -%}
    {%- set files = [] -%}
    {%- for version in range(newest, [newest - count, -1] | max, -1) -%}
        {%- do files.append("%020d.json" | format(version)) -%}
    {%- endfor -%}
    {%- do return(heartbeat._json_rows(heartbeat._delta_commits_sql(table, files))) -%}
{%- endmacro %}

{#- What commits of a Delta log did to the data: by their file actions first, then by their name. These rules are the
    sensor's (harness/sense/sources/delta/classify.py) and must agree with them. -#}
{% macro _delta_commits_sql(table, files) -%}
with

{{ heartbeat._delta_actions_sql(table.location, files) }},

{{ heartbeat._delta_changes_sql() }},

{{ heartbeat._delta_partitions_sql(table.partition_columns) }}

select
    to_json(named_struct(
        'snapshot_id', cast(versions.version as string),
        'snapshot_ts', versions.snapshot_ts,
        'operation_name', versions.operation_name,
        'operation', case
            when changes.version is null then null
            when not changes.has_removed then 'APPEND'
            when not changes.has_added or versions.operation_name = 'DELETE' then 'DELETE'
            when changes.only_hides_rows then 'DELETE'
            else 'UPDATE'
        end,
        'overwrite', if(lower(versions.mode) = 'overwrite', 'true', null),
        'replaced', if(contains(upper(versions.operation_name), 'REPLACE TABLE'), 'true', null),
        'partitions', slice(touched.partitions, 1, 1001),
        'is_truncated', not touched.are_all
    )) as commit
from versions
left join changes on versions.version = changes.version
left join touched on versions.version = touched.version
order by versions.version desc
{%- endmacro %}

{#- The first CTEs of _delta_commits_sql: the content of commit files, and the file actions that change data. -#}
{% macro _delta_actions_sql(location, files) -%}
actions as (
    select
        cast(substring(_metadata.file_name, 1, 20) as bigint) as version,
        unix_millis(_metadata.file_modification_time) as written_at,
        from_json(value, '{{ heartbeat._delta_action_type() }}') as action
    from text.`{{ location }}/_delta_log/{ {{- files | join(",") -}} }`
),

versions as (
    select
        version,
        coalesce(max(action.commitinfo.incommittimestamp), max(written_at)) as snapshot_ts,
        max(action.commitinfo.operation) as operation_name,
        max(replace(action.commitinfo.operationparameters['mode'], '"')) as mode
    from actions
    group by version
),

files as (
    select
        version,
        action.add is not null as is_added,
        coalesce(action.add, action.remove) as file
    from actions
    where coalesce(action.add, action.remove).datachange
)
{%- endmacro %}

{#- The type of one line of a commit file, with the fields about data. -#}
{% macro _delta_action_type() -%}
    {%- set file -%}
        struct<path: string, partitionValues: map<string, string>, dataChange: boolean,
        deletionVector: struct<cardinality: bigint>>
    {%- endset -%}
    struct<
        add: {{ file }},
        remove: {{ file }},
        commitInfo: struct<operation: string, inCommitTimestamp: bigint, operationParameters: map<string, string>>
    >
{%- endmacro %}

{#- Two CTEs of _delta_commits_sql: what becomes of each file of a version, and what that amounts to. -#}
{% macro _delta_changes_sql() -%}
paths as (
    select
        version,
        file.path,
        max(case when is_added then coalesce(file.deletionvector.cardinality, 0) end) as hidden_after,
        max(case when not is_added then coalesce(file.deletionvector.cardinality, 0) end) as hidden_before
    from files
    group by version, file.path
),

changes as (
    select
        version,
        bool_or(hidden_after is not null) as has_added,
        bool_or(hidden_before is not null) as has_removed,
        -- A path that comes back with a longer deletion vector. A shorter one brings rows back.
        bool_and(hidden_after is null or coalesce(hidden_after >= hidden_before, false))
        and bool_or(coalesce(hidden_after > hidden_before, false)) as only_hides_rows
    from paths
    group by version
)
{%- endmacro %}

{#- A CTE of _delta_commits_sql: the partitions in the file actions of a version, and whether they are all known. -#}
{% macro _delta_partitions_sql(partition_columns) -%}
{%- set knows_all = "size(array_except(array('" ~ partition_columns | map(attribute='name') | join("', '")
    ~ "'), coalesce(map_keys(file.partitionvalues), array()))) = 0" -%}
touched as (
    select
        version,
        {%- if partition_columns %}
        array_sort(collect_set(case
            when {{ knows_all }} then array(
                {%- for column in partition_columns %}
                {{ heartbeat._partition_as_json("file.partitionvalues['" ~ column.name ~ "']", column.type) }}
                {{- "," if not loop.last }}
                {%- endfor %}
            )
        end)) as partitions,
        bool_and({{ knows_all }}) as are_all
        {%- else %}
        cast(array() as array<array<string>>) as partitions,
        true as are_all
        {%- endif %}
    from files
    group by version
)
{%- endmacro %}

{#- The newest commits of a Delta table, newest first, by the names and counts in its history; an update if in doubt.
    These rules are those of harness/sense/sources/delta/history.py and must agree with them. -#}
{% macro _delta_commits_by_history(relation, count) -%}
    {%- set silent = [
        'ADD COLUMNS', 'ADD CONSTRAINT', 'CHANGE COLUMN', 'CHANGE COLUMNS', 'CLUSTER BY', 'COMPUTE STATS', 'CREATE TABLE',
        'DROP COLUMNS', 'DROP CONSTRAINT', 'DROP FEATURE', 'OPTIMIZE', 'RENAME COLUMN', 'REORG', 'REPLACE COLUMNS',
        'ROW TRACKING BACKFILL', 'SET TBLPROPERTIES', 'UNSET TBLPROPERTIES', 'UPDATE SCHEMA', 'UPGRADE PROTOCOL',
        'VACUUM END', 'VACUUM START',
    ] -%}
    {%- set commits = [] -%}
    {%- for row in run_query("describe history " ~ relation ~ " limit " ~ count).rows -%}
        {%- set metrics = heartbeat._as_mapping(row['operationMetrics']) -%}
        {%- set parameters = heartbeat._as_mapping(row['operationParameters']) -%}
        {%- set mode = parameters.get('mode', parameters.get('outputMode', '')) | replace('"', '') | lower -%}
        {%- set name = row['operation'] | upper -%}
        {%- set counts = [] -%}
        {%- for key in ['numFiles', 'numAddedFiles', 'numRemovedFiles', 'numOutputRows'] if key in metrics -%}
            {%- do counts.append(metrics[key] | string) -%}
        {%- endfor -%}
        {%- set commit = {
            'snapshot_id': row['version'] | string,
            'snapshot_ts': (row['timestamp'].timestamp() * 1000) | round | int,
            'operation_name': row['operation'],
        } -%}
        {%- if name not in silent and (not counts or counts | unique | list != ['0']) -%}
            {%- set is_append = name in ['CREATE TABLE AS SELECT', 'COPY INTO', 'STREAMING UPDATE']
                or (name == 'WRITE' and mode == 'append') -%}
            {%- set is_deletion = name in ['DELETE', 'TRUNCATE'] -%}
            {%- do commit.update(operation='DELETE' if is_deletion else 'APPEND' if is_append else 'UPDATE') -%}
        {%- endif -%}
        {%- do commits.append(commit) -%}
    {%- endfor -%}
    {%- do return(commits) -%}
{%- endmacro %}

{#- The history of a Delta table since the first end of a range: its `snapshots`, and what prevents reading the range
    (`lost`), or reading it from the change data feed (`rewritten`). -#}
{% macro _delta_history_since(relation, range) -%}
    {%- set fed = ['WRITE', 'MERGE', 'UPDATE', 'DELETE', 'TRUNCATE', 'COPY INTO', 'STREAMING UPDATE', 'OPTIMIZE',
        'VACUUM START', 'VACUUM END'] -%}
    {%- set newest = heartbeat._query_rows("describe history " ~ relation ~ " limit 1")[0][0] | int -%}
    {%- set count = newest - (range.since if range.since is not none else range.until) | int + 1 -%}
    {%- set found = {'snapshots': []} -%}
    {%- if count > 0 -%}
        {%- for row in run_query("describe history " ~ relation ~ " limit " ~ count).rows -%}
            {%- do found.snapshots.append(row['version'] | int | string) -%}
            {%- set is_after = range.since is not none and row['version'] | int > range.since | int -%}
            {%- set deleted = heartbeat._as_mapping(row['operationMetrics']).get('numDeletedFiles', '0') -%}
            {%- if is_after and row['operation'] == 'VACUUM END' and deleted | string != '0' -%}
                {%- do found.update(lost="VACUUM has deleted files since version " ~ range.since) -%}
            {%- elif is_after and row['operation'] not in fed and row['version'] | int <= range.until | int -%}
                {%- do found.update(rewritten=row['operation']) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(found) -%}
{%- endmacro %}

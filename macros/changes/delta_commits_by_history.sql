{#- The newest commits of a Delta table, newest first, by the names and counts in its history: in doubt an
    update. These are the rules of harness/sense/sources/delta/history.py, and the two have to agree. -#}
{% macro delta_commits_by_history(relation, count) -%}
    {%- set silent = [
        'ADD COLUMNS', 'ADD CONSTRAINT', 'CHANGE COLUMN', 'CHANGE COLUMNS', 'CLUSTER BY', 'COMPUTE STATS', 'CREATE TABLE',
        'DROP COLUMNS', 'DROP CONSTRAINT', 'DROP FEATURE', 'OPTIMIZE', 'RENAME COLUMN', 'REORG', 'REPLACE COLUMNS',
        'ROW TRACKING BACKFILL', 'SET TBLPROPERTIES', 'UNSET TBLPROPERTIES', 'UPDATE SCHEMA', 'UPGRADE PROTOCOL',
        'VACUUM END', 'VACUUM START',
    ] -%}
    {%- set commits = [] -%}
    {%- for row in run_query("describe history " ~ relation ~ " limit " ~ count).rows -%}
        {%- set metrics = heartbeat.as_mapping(row['operationMetrics']) -%}
        {%- set parameters = heartbeat.as_mapping(row['operationParameters']) -%}
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

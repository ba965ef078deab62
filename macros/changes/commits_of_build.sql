{#- The commits that this build made and that changed data, newest first, and in any case the newest such
    commit of the table: a build whose hook failed may have made it. Each knows the one before it. -#}
{% macro commits_of_build(relation, table, partition) -%}
    {%- set began = (run_started_at.timestamp() * 1000) | int -%}
    {%- if table.format == 'HIVE' -%}
        {%- do return(heartbeat.hive_commits(relation, table, began, partition)) -%}
    {%- endif -%}
    {%- if table.format == 'DELTA' -%}
        {#- Versions of a table that was dropped and made again are counted from the beginning. -#}
        {%- do table.update(table_id=heartbeat.rows_of("describe detail " ~ relation, 2)[0][1]) -%}
    {%- endif -%}
    {%- set found = namespace(commits=[], is_enough=false) -%}
    {%- for count in [20, 1000] -%}
        {%- if not found.is_enough -%}
            {%- if table.format == 'DELTA' -%}
                {%- set commits = heartbeat.delta_commits(relation, table, count) -%}
            {%- else -%}
                {%- set commits = heartbeat.iceberg_commits(relation, count) -%}
            {%- endif -%}
            {%- set found.commits = commits | selectattr('operation', 'defined') | list -%}
            {%- set earlier = found.commits[1:] | selectattr('snapshot_ts', 'lt', began) | list -%}
            {%- set found.is_enough = earlier or commits | length < count -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set told = [] -%}
    {%- for commit in found.commits -%}
        {%- if loop.first or commit.snapshot_ts >= began -%}
            {%- set before = loop.nextitem.snapshot_id if not loop.last else none -%}
            {%- do told.append(dict(commit, prev_snapshot_id=before)) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(told) -%}
{%- endmacro %}

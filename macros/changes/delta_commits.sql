{#- The newest commits of a Delta table, newest first: by their own files in the log where these can be read,
    as the sensor does, else by the table's history, which knows no partitions. -#}
{% macro delta_commits(relation, table, count) -%}
    {%- set is_by_catalog = 'catalogManaged' in table.properties or 'catalogOwned' in table.properties -%}
    {%- if is_by_catalog or not var('heartbeat_reads_delta_log', target.type != 'databricks') -%}
        {%- do return(heartbeat.delta_commits_by_history(relation, count)) -%}
    {%- endif -%}
    {%- set newest = heartbeat.rows_of("describe history " ~ relation ~ " limit 1")[0][0] | int -%}
    {%- set files = [] -%}
    {%- for version in range(newest, [newest - count, -1] | max, -1) -%}
        {%- do files.append("%020d.json" | format(version)) -%}
    {%- endfor -%}
    {%- do return(heartbeat.commits_in(heartbeat.delta_commits_sql(table, files))) -%}
{%- endmacro %}

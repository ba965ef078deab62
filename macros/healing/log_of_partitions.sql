{#- The files of a Delta log that tell which files are alive: the newest checkpoint (-1: none) and the commits after it.
    Nothing when the log cannot be read by its files. Listing costs no reading. -#}
{% macro log_of_partitions(table) -%}
    {%- set is_by_catalog = 'catalogManaged' in table.properties or 'catalogOwned' in table.properties -%}
    {%- set is_named_otherwise = 'delta.columnMapping.mode' in table.properties -%}
    {%- if table.format != 'DELTA' or is_by_catalog or is_named_otherwise
        or not var('heartbeat_reads_delta_log', target.type != 'databricks') -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set query -%}
        with files as (
            select
                cast(regexp_extract(path, '([0-9]{20})[.](json|checkpoint[.]parquet)$', 1) as bigint) as version,
                path like '%.json' as is_commit
            from binaryFile.`{{ table.location }}/_delta_log/*.{json,parquet}`
            where path rlike '/[0-9]{20}[.](json|checkpoint[.]parquet)$'
        ),
        checkpoints as (
            select coalesce(max(version), -1) as version
            from files
            where not is_commit
        )
        select
            checkpoints.version,
            max(if(files.is_commit, files.version, -1)),
            count_if(files.is_commit and files.version > checkpoints.version)
        from files
        cross join checkpoints
        group by checkpoints.version
    {%- endset -%}
    {%- set checkpoint, newest, count = heartbeat.rows_of(query, 3)[0] | map('int') -%}
    {%- if count != newest - checkpoint or count > 2000 -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return({'checkpoint': checkpoint, 'newest': newest}) -%}
{%- endmacro %}

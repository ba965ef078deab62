{#- The partitions of a table by one of its partition columns: the column, an id of the table, and the facts of each
    partition, the oldest first. -#}
{% macro _partitions_of(relation, partition) -%}
    {%- set table = heartbeat._table_facts(relation) -%}
    {%- set found = [] -%}
    {%- for each in table.partition_columns if each.name | lower == partition | lower -%}
        {%- do found.append(each) -%}
    {%- endfor -%}
    {%- if not found -%}
        {%- do exceptions.raise_compiler_error(
            "pending_partitions: " ~ table.name ~ " is not partitioned by " ~ partition ~ "; its partition columns are: "
            ~ (table.partition_columns | map(attribute='name') | join(", ") or "none")) -%}
    {%- endif -%}
    {%- set column = found[0] -%}
    {%- set log_files = heartbeat._partition_log_files(table) -%}
    {%- set query = heartbeat._partitions_by_scan(relation, table, column) if log_files is none
        else heartbeat._partitions_by_log(table, log_files, column) -%}
    {%- set ordered -%}
        select fact
        from ({{ query }})
        order by cast(get_json_object(fact, '$.at') as bigint) nulls last, fact
    {%- endset -%}
    {%- do return({
        'column': column,
        'name': table.name | lower,
        'id': heartbeat._delta_table_id(relation) if table.format == 'DELTA' else '',
        'partitions': heartbeat._json_rows(ordered),
    }) -%}
{%- endmacro %}

{#- The files of a Delta log that determine the live files: the newest checkpoint (-1: none) and the commits after it.
    None if the log cannot be read from its files. Listing reads no content. -#}
{% macro _partition_log_files(table) -%}
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
    {%- set checkpoint, newest, count = heartbeat._query_rows(query, 3)[0] | map('int') -%}
    {%- if count != newest - checkpoint or count > 2000 -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return({'checkpoint': checkpoint, 'newest': newest}) -%}
{%- endmacro %}

{#- The query for a Delta table's partitions by its log: the last action of each file, aggregated by partition. It
    opens no data file. -#}
{% macro _partitions_by_log(table, log_files, column) -%}
    {%- set folder = table.location ~ "/_delta_log/" -%}
    {%- set file = "struct<path: string, partitionValues: map<string, string>, stats: string, "
        ~ "deletionVector: struct<pathOrInlineDv: string, offset: int, cardinality: bigint>>" -%}
    {%- set commits = [] -%}
    {%- for version in range(log_files.checkpoint + 1, log_files.newest + 1) -%}
        {%- do commits.append("%020d.json" | format(version)) -%}
    {%- endfor -%}
    {%- set sources = [] -%}
    {%- if log_files.checkpoint >= 0 -%}
        {%- do sources.append("select " ~ log_files.checkpoint ~ " as version, to_json(struct(add, remove)) as action from parquet.`"
            ~ folder ~ "%020d" | format(log_files.checkpoint) ~ ".checkpoint.parquet` where add is not null") -%}
    {%- endif -%}
    {%- if commits -%}
        {%- do sources.append("select cast(substring(_metadata.file_name, 1, 20) as bigint) as version, value as action "
            ~ "from text.`" ~ folder ~ "{" ~ commits | join(",") ~ "}`") -%}
    {%- endif -%}
    {%- set rows = "cast(get_json_object(file.stats, '$.numRecords') as bigint)" -%}
    with actions as (
        select version, from_json(action, 'struct<add: {{ file }}, remove: {{ file }}>') as action
        from ({{ sources | join(" union all ") }})
    ),
    alive as (
        select max_by(action.add, struct(version, action.add is not null)) as file
        from actions
        where coalesce(action.add.path, action.remove.path) is not null
        group by coalesce(action.add.path, action.remove.path)
    )
    select {{ heartbeat._partition_fact(
        "cast(nullif(file.partitionvalues['" ~ column.name ~ "'], '') as " ~ column.type ~ ")", column.type,
        "sum(" ~ rows ~ " - coalesce(file.deletionvector.cardinality, 0))",
        "hex(bit_xor(xxhash64(file.path, file.deletionvector)))") }}
    from alive
    where file is not null
    group by file.partitionvalues['{{ column.name }}']
{%- endmacro %}

{#- The query for the partitions of a table whose log cannot be read: it reads the row count of each data file. -#}
{% macro _partitions_by_scan(relation, table, column) -%}
    {%- set knows_files = table.provider in ('delta', 'parquet', 'orc', 'avro', 'csv', 'json', 'text') -%}
    {%- set quoted = adapter.quote(column.name) -%}
    select {{ heartbeat._partition_fact(
        quoted, column.type, "count(*)",
        "coalesce(cast(max(unix_millis(_metadata.file_modification_time)) as string), '')" if knows_files else "''") }}
    from {{ relation }}
    group by {{ quoted }}
{%- endmacro %}

{#- The facts of a partition, as JSON in SQL: its value, its instant for the lookback window, and a stamp that changes
    with its data: the number of its rows, and their files. -#}
{% macro _partition_fact(value, type, row_count, files) -%}
    {%- set is_time = type in ('timestamp', 'timestamp_ntz', 'date', 'string') -%}
    to_json(named_struct(
        'value', {{ heartbeat._partition_text(value, type) }},
        'at', {{ "unix_seconds(try_cast(" ~ value ~ " as timestamp))" if is_time else "cast(null as bigint)" }},
        'stamp', concat(coalesce(cast({{ row_count }} as string), ''), '/', {{ files }})
    ), map('ignoreNullFields', 'false')) as fact
{%- endmacro %}

{#- The value of a partition as text in SQL; an instant in UTC, whatever the session's time zone. -#}
{% macro _partition_text(value, type) -%}
    {%- if type == 'timestamp' -%}
        get_json_object(to_json(
            named_struct('value', {{ value }}), map('timeZone', 'UTC', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX')
        ), '$.value')
    {%- else -%}
        cast({{ value }} as string)
    {%- endif -%}
{%- endmacro %}

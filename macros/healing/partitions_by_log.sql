{#- The query for a Delta table's partitions by its log: the last word on each file, put together by partition. No data
    file is opened, whatever their number. -#}
{% macro partitions_by_log(table, log_files, column) -%}
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
    select {{ heartbeat.partition_fact(
        "cast(nullif(file.partitionvalues['" ~ column.name ~ "'], '') as " ~ column.type ~ ")", column.type,
        "sum(" ~ rows ~ " - coalesce(file.deletionvector.cardinality, 0))",
        "hex(bit_xor(xxhash64(file.path, file.deletionvector)))") }}
    from alive
    where file is not null
    group by file.partitionvalues['{{ column.name }}']
{%- endmacro %}

{#- What this build wrote into a table without snapshots, as one commit without an id: the partitions that the model
    names, else those with files written since the run began. Empty if there is no such file. -#}
{% macro _hive_commits(relation, table, began, partition) -%}
    {%- set is_rebuilt = config.get('materialized') != 'incremental' or flags.FULL_REFRESH -%}
    {%- set is_appended = not is_rebuilt and config.get('incremental_strategy') in (none, 'append') -%}
    {%- set commit = {'operation': 'APPEND' if is_appended else 'UPDATE', 'prev_snapshot_id': none} -%}
    {%- if table.provider in ('parquet', 'orc', 'avro', 'csv', 'json', 'text') -%}
        {%- set query -%}
            select to_json(named_struct(
                'snapshot_ts', unix_millis(max(_metadata.file_modification_time)),
                'partitions', slice(array_sort(collect_set(array(
                    {%- for column in table.partition_columns %}
                    {{ heartbeat._partition_as_json("cast(" ~ adapter.quote(column.name) ~ " as string)", "string") }}
                    {{- "," if not loop.last }}
                    {%- endfor %}
                ))), 1, 1001)
            ))
            from {{ relation }}
            where _metadata.file_modification_time >= timestamp_millis({{ began }})
        {%- endset -%}
        {%- do commit.update(heartbeat._json_rows(query)[0]) -%}
        {%- if commit.snapshot_ts is not defined and partition is none and not is_rebuilt -%}
            {%- do return([]) -%}
        {%- endif -%}
    {%- endif -%}
    {%- do return([commit]) -%}
{%- endmacro %}

{#- The query for the partitions of a table whose log cannot be read: of each data file its number of rows is read. -#}
{% macro partitions_by_scan(relation, table, column) -%}
    {%- set knows_files = table.provider in ('delta', 'parquet', 'orc', 'avro', 'csv', 'json', 'text') -%}
    {%- set quoted = adapter.quote(column.name) -%}
    select {{ heartbeat.partition_fact(
        quoted, column.type, "count(*)",
        "coalesce(cast(max(unix_millis(_metadata.file_modification_time)) as string), '')" if knows_files else "''") }}
    from {{ relation }}
    group by {{ quoted }}
{%- endmacro %}

{#- The partitions of a table by one of its partition columns: that column, an id of the table, and what is known of each
    partition, the oldest first. -#}
{% macro partitions_of(relation, partition) -%}
    {%- set table = heartbeat.table_facts(relation) -%}
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
    {%- set log_files = heartbeat.log_of_partitions(table) -%}
    {%- set query = heartbeat.partitions_by_scan(relation, table, column) if log_files is none
        else heartbeat.partitions_by_log(table, log_files, column) -%}
    {%- set ordered -%}
        select fact
        from ({{ query }})
        order by cast(get_json_object(fact, '$.at') as bigint) nulls last, fact
    {%- endset -%}
    {%- do return({
        'column': column,
        'name': table.name | lower,
        'id': heartbeat.delta_table_id(relation) if table.format == 'DELTA' else '',
        'partitions': heartbeat.commits_in(ordered),
    }) -%}
{%- endmacro %}

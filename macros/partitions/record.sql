{#- What a model has taken of a source, by its record: each partition with its stamp. Rows about another table of the
    same name, another source, or a state that a RESTORE has undone do not count. -#}
{% macro _partitions_taken(target_table, source) -%}
    {%- set record = heartbeat._partition_record(target_table) -%}
    {%- set taken = {} -%}
    {%- if load_relation(record) is none -%}
        {%- do return(taken) -%}
    {%- endif -%}
    {%- set query -%}
        select to_json(named_struct(
            'value', partition,
            'stamp', max_by(stamp, struct(table_version, taken_at))
        ), map('ignoreNullFields', 'false')) as fact
        from {{ record }}
        where
            source = {{ heartbeat._sql_literal(source.name, 'string') }}
            and source_id = {{ heartbeat._sql_literal(source.id, 'string') }}
            and table_id = {{ heartbeat._sql_literal(heartbeat._delta_table_id(target_table), 'string') }}
            {%- for restore in heartbeat._restores_of(target_table) %}
            and not (table_version > {{ restore.to }} and table_version < {{ restore.at }})
            {%- endfor %}
        group by partition
    {%- endset -%}
    {%- for fact in heartbeat._json_rows(query) -%}
        {%- do taken.update({fact.value: fact.stamp}) -%}
    {%- endfor -%}
    {%- do return(taken) -%}
{%- endmacro %}

{#- What a model has taken, by a column of its own table. A partition without rows there is not found. -#}
{% macro _partitions_in_column(target_table, column, type) -%}
    {%- set taken = {} -%}
    {%- set value = "cast(" ~ adapter.quote(column) ~ " as " ~ type ~ ")" -%}
    {%- set query -%}
        select to_json(named_struct('value', {{ heartbeat._partition_text(value, type) }}), map('ignoreNullFields', 'false'))
        from {{ target_table }}
        group by {{ value }}
    {%- endset -%}
    {%- for fact in heartbeat._json_rows(query) -%}
        {%- do taken.update({fact.value: none}) -%}
    {%- endfor -%}
    {%- do return(taken) -%}
{%- endmacro %}

{#- What a refresh model has taken, by its batch log, in which each partition is a batch. A refused batch is not
    taken, and an unloaded one is checked again, since it may have changed. -#}
{% macro _partitions_in_batch_log(node, hub, taken, type) -%}
    {%- if taken is not none or not heartbeat._refresh_settings(node).batch_by -%}
        {%- do exceptions.raise_compiler_error(
            node.name ~ ": the batch log of a refresh model has the partitions that it has taken: leave taken out, and name the column "
            ~ "that holds the partition in meta.refresh.batch_by") -%}
    {%- endif -%}
    {%- set tables = heartbeat._refresh_tables(hub) -%}
    {%- if load_relation(tables.ledger) is none -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set batches -%}
        (
            select newest.batch
            from ({{ heartbeat._refresh_newest_logged(heartbeat._refresh_context(tables), heartbeat._refresh_column_names(tables.ledger)) }})
            where newest.batch is not null and newest.state not in ('FAILED', 'CLAIMED', 'UNLOADED')
        )
    {%- endset -%}
    {%- do return(heartbeat._partitions_in_column(batches, 'batch', type)) -%}
{%- endmacro %}

{#- The table beside a model's own that records which partitions the model has taken. -#}
{% macro _partition_record(target_table) -%}
    {%- do return(api.Relation.create(
        database=target_table.database, schema=target_table.schema, identifier=target_table.identifier ~ '_taken',
        type='table')) -%}
{%- endmacro %}

{#- Creates the record of a model's partitions, if it does not exist. -#}
{% macro _create_partition_record(record) -%}
    {%- do run_query(
        "create table if not exists " ~ record ~ " (source string, source_id string, partition_column string, "
        ~ "partition string, stamp string, look_back_days int, table_id string, table_version bigint, taken_at timestamp, "
        ~ "invocation_id string, intent_id string) using delta") -%}
{%- endmacro %}

{#- The tables of which a model has taken partitions, with the column and the lookback of the newest run. -#}
{% macro _partition_record_sources(record) -%}
    {%- set query -%}
        select to_json(max_by(struct(source, partition_column, look_back_days), taken_at), map('ignoreNullFields', 'false'))
        from {{ record }}
        group by source
    {%- endset -%}
    {%- do return(heartbeat._json_rows(query)) -%}
{%- endmacro %}

{#- The RESTORE commits of a Delta table: the version of each, and the version that was restored. -#}
{% macro _restores_of(relation) -%}
    {%- set found = [] -%}
    {%- for row in run_query("describe history " ~ relation).rows if row['operation'] == 'RESTORE' -%}
        {%- set to = heartbeat._as_mapping(row['operationParameters']).get('version') -%}
        {#- A RESTORE by time has no version: then nothing from before it counts. -#}
        {%- do found.append({'at': row['version'] | int, 'to': to | int(-1) if to is not none else -1}) -%}
    {%- endfor -%}
    {%- do return(found) -%}
{%- endmacro %}

{#- The id of a Delta table until it is recreated; a restored table has that of its earlier state. -#}
{% macro _delta_table_id(relation) -%}
    {%- do return(run_query("describe detail " ~ relation).rows[0]['id'] | string) -%}
{%- endmacro %}

{#- The post-hook of a model with pending_partitions: records the partitions that its query has read, as they were
    before it. It runs after the merge, so that a run that dies in between takes them again. -#}
{% macro record_partitions() -%}
    {%- set rows = [] -%}
    {%- for text in modules.re.findall(
        '/[*] heartbeat[.]pending_partitions (.*?) [*]/', (model.compiled_code or '') if execute else '') -%}
        {%- set note = fromjson(text) -%}
        {%- for each in note.partitions -%}
            {%- set cells = [] -%}
            {%- for cell in [note.source, note.source_id, note.column, each.value, each.stamp] -%}
                {%- do cells.append(heartbeat._sql_literal(cell, 'string')) -%}
            {%- endfor -%}
            {%- do cells.append('null' if note.look_back_days is none else note.look_back_days) -%}
            {%- do rows.append("(" ~ cells | join(", ") ~ ")") -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if rows -%}
        {%- set record = heartbeat._partition_record(this) -%}
        {%- do heartbeat._create_partition_record(record) -%}
        insert into {{ record }}
        select
            given.source, given.source_id, given.partition_column, given.partition, given.stamp, given.look_back_days,
            {{ heartbeat._sql_literal(heartbeat._delta_table_id(this), 'string') }} as table_id,
            {{ heartbeat._query_rows("describe history " ~ this ~ " limit 1")[0][0] | int }} as table_version,
            current_timestamp() as taken_at,
            '{{ invocation_id }}' as invocation_id,
            {{ heartbeat._sql_literal(env_var('HEARTBEAT_INTENT_ID', '') or none, 'string') }} as intent_id
        from values {{ rows | join(", ") }}
            as given (source, source_id, partition_column, partition, stamp, look_back_days)
    {%- endif -%}
{%- endmacro %}

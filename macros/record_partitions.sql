{#- The post-hook of a model that asks for pending_partitions: records those that its query has read, as they were before
    it. It comes after the merge, so that a run that dies in between takes them once more. -#}
{% macro record_partitions() -%}
    {%- set rows = [] -%}
    {%- for text in modules.re.findall(
        '/[*] heartbeat[.]pending_partitions (.*?) [*]/', (model.compiled_code or '') if execute else '') -%}
        {%- set note = fromjson(text) -%}
        {%- for each in note.partitions -%}
            {%- set cells = [] -%}
            {%- for cell in [note.source, note.source_id, note.column, each.value, each.stamp] -%}
                {%- do cells.append(heartbeat.seed_literal(cell, 'string')) -%}
            {%- endfor -%}
            {%- do cells.append('null' if note.look_back_days is none else note.look_back_days) -%}
            {%- do rows.append("(" ~ cells | join(", ") ~ ")") -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if rows -%}
        {%- set record = heartbeat.record_of_partitions(this) -%}
        {%- do heartbeat.make_record_of_partitions(record) -%}
        insert into {{ record }}
        select
            given.source, given.source_id, given.partition_column, given.partition, given.stamp, given.look_back_days,
            {{ heartbeat.seed_literal(heartbeat.delta_table_id(this), 'string') }} as table_id,
            {{ heartbeat.rows_of("describe history " ~ this ~ " limit 1")[0][0] | int }} as table_version,
            current_timestamp() as taken_at,
            '{{ invocation_id }}' as invocation_id,
            {{ heartbeat.seed_literal(env_var('HEARTBEAT_INTENT_ID', '') or none, 'string') }} as intent_id
        from values {{ rows | join(", ") }}
            as given (source, source_id, partition_column, partition, stamp, look_back_days)
    {%- endif -%}
{%- endmacro %}

{#- The statement that writes events into a folder of the inbox. A statement of SQL can write no single file;
    the folder is whole when Spark has put `_SUCCESS` into it, and only then the tick takes it in. -#}
{% macro leave_in_inbox(events) -%}
{%- set listed = tojson(events) -%}
{%- set name = "registered-" ~ invocation_id ~ "-" ~ local_md5(model.unique_id ~ listed)[:12] -%}
{%- set type -%}
    array<struct<
        `table`: string, `partition`: array<string>, snapshot_id: string, snapshot_ts: bigint,
        prev_snapshot_id: string, table_format: string, operation_type: string,
        tags: map<string, string>, event_id: string
    >>
{%- endset -%}
insert overwrite directory {{ heartbeat.seed_literal(heartbeat.inbox_folder() ~ "/" ~ name, 'string') }}
using json
select inline(from_json({{ heartbeat.seed_literal(listed, 'string') }}, '{{ type }}'))
{%- endmacro %}

{#- What snapshots of an Iceberg table did to the data, by their summaries. -#}
{% macro iceberg_commits_sql(relation, count) -%}
{%- set changes = "array('added-data-files', 'deleted-data-files', 'added-delete-files', 'removed-delete-files', "
    ~ "'added-records', 'deleted-records')" -%}
{%- set has_changes = "exists(" ~ changes ~ ", name -> coalesce(trim(summary[name]), '') not in ('', '0'))" -%}
{%- set counts = "array('changed-partition-count', 'total-data-files', 'total-records')" -%}
{%- set has_counts = "exists(" ~ counts ~ ", name -> map_contains_key(summary, name))" -%}
with

present as (
    select snapshot_id from {{ relation }}.refs where name = 'main'
),

snapshots as (
    select *, {{ heartbeat.iceberg_partitions_sql() }} as partitions
    from {{ relation }}.snapshots
)

select
    to_json(named_struct(
        'snapshot_id', cast(snapshots.snapshot_id as string),
        'parent_id', cast(snapshots.parent_id as string),
        'snapshot_ts', unix_millis(snapshots.committed_at),
        'operation_name', snapshots.operation,
        'operation', case
            when snapshots.operation = 'replace' then null
            when not {{ has_changes }} and {{ has_counts }} then null
            when snapshots.operation = 'append' then 'APPEND'
            when snapshots.operation = 'delete' then 'DELETE'
            else 'UPDATE'
        end,
        'overwrite', if(map_contains_key(summary, 'replace-partitions'), 'true', null),
        'partitions', slice(snapshots.partitions, 1, 1001),
        'is_truncated', false,
        'is_present', present.snapshot_id is not null
    )) as commit
from snapshots
left join present on snapshots.snapshot_id = present.snapshot_id
order by snapshots.committed_at desc
limit {{ count }}
{%- endmacro %}

{#- The newest snapshots of an Iceberg table's main branch, newest first. They are classified as in the sensor
    (harness/sense/sources/iceberg/classify.py), and the two must agree. -#}
{% macro _iceberg_commits(relation, count) -%}
    {%- set by_id = {} -%}
    {%- set place = namespace(id=none) -%}
    {%- for row in heartbeat._json_rows(heartbeat._iceberg_commits_sql(relation, count)) -%}
        {%- do by_id.update({row.snapshot_id: row}) -%}
        {%- set place.id = row.snapshot_id if row.is_present else place.id -%}
    {%- endfor -%}
    {%- set commits = [] -%}
    {%- for _ in by_id -%}
        {%- if place.id in by_id -%}
            {%- do commits.append(by_id[place.id]) -%}
            {%- set place.id = by_id[place.id].parent_id -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(commits) -%}
{%- endmacro %}

{#- What snapshots of an Iceberg table did to the data, by their summaries. -#}
{% macro _iceberg_commits_sql(relation, count) -%}
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
    select *, {{ heartbeat._iceberg_partitions_sql() }} as partitions
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

{#- SQL for the partitions that a snapshot's summary names, if the table has its writers name them. -#}
{% macro _iceberg_partitions_sql() -%}
{%- set value = "url_decode(substring(part, coalesce(nullif(instr(part, '='), 0), length(part)) + 1))" -%}
array_sort(transform(
    filter(map_keys(summary), name -> startswith(name, 'partitions.')),
    name -> transform(
        split(substring(name, 12), '/'),
        part -> case
            when {{ value }} = 'null' then 'null'
            else substring(to_json(array({{ value }})), 2, length(to_json(array({{ value }}))) - 2)
        end
    )
))
{%- endmacro %}

{#- The snapshots that an Iceberg table keeps, and whether the later end of a range with breaks comes after all of its
    snapshots; if not, the order of its ends was a guess (`unordered`). -#}
{% macro _iceberg_history_since(relation, range) -%}
    {%- set parents = dict(heartbeat._query_rows(
        "select cast(snapshot_id as string), cast(parent_id as string) from " ~ relation ~ ".snapshots", 2)) -%}
    {%- set found = {'snapshots': parents.keys() | list} -%}
    {%- set place = namespace(id=range.until, passed=[]) -%}
    {%- for _ in parents if place.id in parents and place.id != range.since -%}
        {%- do place.passed.append(place.id) -%}
        {%- set place.id = parents[place.id] -%}
    {%- endfor -%}
    {%- set missed = range.get('snapshots', []) | reject('in', place.passed) | list -%}
    {%- if range.snapshots is defined and (missed or place.id != range.since) -%}
        {%- do found.update(unordered=range.why) -%}
    {%- endif -%}
    {%- do return(found) -%}
{%- endmacro %}

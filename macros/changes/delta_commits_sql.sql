{#- What commits of a Delta log did to the data: by their file actions first, by their name second. These
    are the rules of the sensor (harness/sense/sources/delta/classify.py), and the two have to agree. -#}
{% macro delta_commits_sql(table, files) -%}
with

{{ heartbeat.delta_actions_sql(table.location, files) }},

{{ heartbeat.delta_changes_sql() }},

{{ heartbeat.delta_touched_sql(table.partition_columns) }}

select
    to_json(named_struct(
        'snapshot_id', cast(versions.version as string),
        'snapshot_ts', versions.snapshot_ts,
        'operation_name', versions.operation_name,
        'operation', case
            when changes.version is null then null
            when not changes.has_removed then 'APPEND'
            when not changes.has_added or versions.operation_name = 'DELETE' then 'DELETE'
            when changes.only_hides_rows then 'DELETE'
            else 'UPDATE'
        end,
        'overwrite', if(lower(versions.mode) = 'overwrite', 'true', null),
        'replaced', if(contains(upper(versions.operation_name), 'REPLACE TABLE'), 'true', null),
        'partitions', slice(touched.partitions, 1, 1001),
        'is_truncated', not touched.are_all
    )) as commit
from versions
left join changes on versions.version = changes.version
left join touched on versions.version = touched.version
order by versions.version desc
{%- endmacro %}

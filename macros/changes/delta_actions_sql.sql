{#- The first steps of delta_commits_sql: what stands in commit files, and the file actions that change data. -#}
{% macro delta_actions_sql(location, files) -%}
actions as (
    select
        cast(substring(_metadata.file_name, 1, 20) as bigint) as version,
        unix_millis(_metadata.file_modification_time) as written_at,
        from_json(value, '{{ heartbeat.delta_action_type() }}') as action
    from text.`{{ location }}/_delta_log/{ {{- files | join(",") -}} }`
),

versions as (
    select
        version,
        coalesce(max(action.commitinfo.incommittimestamp), max(written_at)) as snapshot_ts,
        max(action.commitinfo.operation) as operation_name,
        max(replace(action.commitinfo.operationparameters['mode'], '"')) as mode
    from actions
    group by version
),

files as (
    select
        version,
        action.add is not null as is_added,
        coalesce(action.add, action.remove) as file
    from actions
    where coalesce(action.add, action.remove).datachange
)
{%- endmacro %}

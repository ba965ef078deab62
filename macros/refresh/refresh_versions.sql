{#- All versions of some keys, worked out from the archive's batches in the order of their receipt by the same rule that
    gives a row its code, as a query: `s_is_version` those of the history, `s_is_last` what the hub is to have. -#}
{% macro refresh_versions(load, affected, live) -%}
    {%- set settings, keys = load.settings, heartbeat.refresh_names(load.settings.key, 'received') -%}
    {%- set in_order = "partition by " ~ keys ~ " order by received.s_update_timestamp, received.s_input_id" -%}
    with affected as ({{ affected }}),

    received as ({{ heartbeat.refresh_received_rows(load, live) }}),

    folded as (
        select {{ heartbeat.refresh_names(settings.key) }}, {{ heartbeat.refresh_fold(settings) }} as state
        from received
        group by {{ heartbeat.refresh_names(settings.key) }}
    ),

    marked as (
        select
            received.*, folded.state.s_seen_input_id, folded.state.s_update_timestamp as s_touched_at,
            folded.state.code as s_hub_code,
            received.s_input_id = element_at(folded.state.versions, -1) as s_is_last,
            {{ heartbeat.refresh_is_version(settings, in_order) }} as s_is_version,
            {{ heartbeat.refresh_kept_values(load) }} as s_kept
        from received
        inner join folded
            on {{ heartbeat.refresh_same_key(settings, 'received', 'folded') }}
    ),

    ended as (
        select
            received.*,
            min(if(s_is_version, s_update_timestamp, null)) over (
                {{ in_order }} rows between 1 following and unbounded following
            ) as s_effective_to
        from marked as received
    )

    select * except (s_update_timestamp), s_update_timestamp as s_effective_from,
        if(s_effective_to is null and s_deleted_flag, s_touched_at, s_update_timestamp) as s_update_timestamp
    from ended
    where s_is_version or s_is_last
{%- endmacro %}

{#- All versions of some keys, worked out from the archive's batches in the order of their receipt by the same rule that
    gives a row its code, as a query. -#}
{% macro refresh_versions(load, affected, ids) -%}
    {%- set settings = load.settings -%}
    with affected as (
        {{ affected }}
    ),

    received as (
        select batches.*
        from {{ load.tables.batches }} as batches
        left semi join affected
            on {{ heartbeat.refresh_same_key(settings, 'batches', 'affected') }}
        where batches.s_input_id in ({{ ids }}) and batches.s_record_status_code not in ('X', 'R')
    ),

    folded as (
        select {{ heartbeat.refresh_names(settings.key) }}, {{ heartbeat.refresh_fold(settings) }} as state
        from received
        group by {{ heartbeat.refresh_names(settings.key) }}
    ),

    versions as (
        select
            received.*, folded.state.s_seen_input_id,
            folded.state.s_update_timestamp as s_touched_at,
            lead(received.s_update_timestamp) over (
                partition by {{ heartbeat.refresh_names(settings.key, 'received') }} order by received.s_input_id
            ) as s_effective_to
        from received
        inner join folded
            on {{ heartbeat.refresh_same_key(settings, 'received', 'folded') }}
                and array_contains(folded.state.versions, received.s_input_id)
    )

    select * except (s_update_timestamp), s_update_timestamp as s_effective_from,
        if(s_effective_to is null and s_deleted_flag, s_touched_at, s_update_timestamp) as s_update_timestamp
    from versions
{%- endmacro %}

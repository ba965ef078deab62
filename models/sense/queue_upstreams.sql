-- one row per distinct upstream that an unpaused control row needs: what the next tick looks at
with

stg_controls as (

    select * from {{ ref('stg_controls') }}

),

int_upstreams_now as (

    select * from {{ ref('int_upstreams_now') }}

),

needed as (

    select
        stg_controls.upstream_id,
        stg_controls.sensor_source,
        stg_controls.sensor_id,
        stg_controls.sensor_read_type,
        stg_controls.upstream_key,
        stg_controls.preprocess_query,
        sort_array(collect_set(stg_controls.job_id)) as job_ids
    from stg_controls
    where not stg_controls.is_paused
    group by
        stg_controls.upstream_id,
        stg_controls.sensor_source,
        stg_controls.sensor_id,
        stg_controls.sensor_read_type,
        stg_controls.upstream_key,
        stg_controls.preprocess_query

),

final as (

    select
        needed.upstream_id,
        needed.sensor_source,
        needed.sensor_id,
        needed.sensor_read_type,
        needed.upstream_key,
        needed.preprocess_query,
        needed.job_ids,
        int_upstreams_now.position,
        int_upstreams_now.upstream_value,
        int_upstreams_now.latest_event_tick,
        int_upstreams_now.latest_event_at,
        int_upstreams_now.recent_events,
        int_upstreams_now.failing_since,
        int_upstreams_now.reason
    from needed
    left join int_upstreams_now
        on needed.upstream_id = int_upstreams_now.upstream_id

)

select * from final

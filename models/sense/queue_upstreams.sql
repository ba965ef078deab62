-- one row per distinct upstream that an unpaused control row needs: what the next tick probes
with

int_dependencies as (

    select * from {{ ref('int_dependencies') }}

),

int_upstreams_now as (

    select * from {{ ref('int_upstreams_now') }}

),

int_dependency_progress as (

    select * from {{ ref('int_dependency_progress') }}

),

needed as (

    select
        int_dependencies.upstream_id,
        int_dependencies.sensor_source,
        int_dependencies.sensor_id,
        int_dependencies.sensor_read_type,
        int_dependencies.upstream_key,
        int_dependencies.preprocess_query,
        sort_array(collect_set(int_dependencies.job_id)) as job_ids
    from int_dependencies
    where not int_dependencies.is_paused
    group by
        int_dependencies.upstream_id,
        int_dependencies.sensor_source,
        int_dependencies.sensor_id,
        int_dependencies.sensor_read_type,
        int_dependencies.upstream_key,
        int_dependencies.preprocess_query

),

consumed as (

    select
        int_dependency_progress.upstream_id,
        collect_list(
            named_struct(
                'job_id', int_dependency_progress.job_id,
                'from_tick', int_dependency_progress.from_tick,
                'through_tick', int_dependency_progress.through_tick
            )
        ) as taken
    from int_dependency_progress
    group by int_dependency_progress.upstream_id

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
        consumed.taken,
        int_upstreams_now.failing_since,
        int_upstreams_now.reason
    from needed
    left join int_upstreams_now
        on needed.upstream_id = int_upstreams_now.upstream_id
    left join consumed
        on needed.upstream_id = consumed.upstream_id

)

select * from final

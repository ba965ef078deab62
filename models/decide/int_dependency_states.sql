-- one row per dependency of a job, and one per dependency that a run consumed and that has left the seeds
-- Over 120 lines: both sides of the outer join and what follows from them are spelled out, column by column.
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

joined as (

    select
        int_dependencies.control_id,
        int_dependencies.sensor_source,
        int_dependencies.sensor_id,
        int_dependencies.sensor_read_type,
        int_dependencies.asset_description,
        int_dependencies.upstream_key,
        int_dependencies.preprocess_query,
        int_dependencies.job_name,
        int_dependencies.job_state,
        int_dependencies.dependency_flag,
        int_dependencies.is_paused,
        int_dependencies.is_required,
        coalesce(int_dependencies.job_id, int_dependency_progress.job_id) as job_id,
        coalesce(int_dependencies.upstream_id, int_dependency_progress.upstream_id)
            as upstream_id,
        int_dependencies.control_id is not null as is_in_controls,
        int_dependency_progress.intent_id,
        int_dependency_progress.attempt,
        int_dependency_progress.run_id,
        int_dependency_progress.run_status,
        int_dependency_progress.message as run_message,
        int_dependency_progress.control_status as run_control_status,
        int_dependency_progress.is_open,
        int_dependency_progress.holds_job,
        int_dependency_progress.gives_back_events,
        int_dependency_progress.is_last_of_job,
        int_dependency_progress.decided_tick,
        int_dependency_progress.decided_at,
        int_dependency_progress.ended_at,
        int_dependency_progress.recorded_at as run_recorded_at,
        int_dependency_progress.from_tick,
        coalesce(int_dependency_progress.consumed_through_tick, -1)
            as consumed_through_tick
    from int_dependencies
    full outer join int_dependency_progress
        on int_dependencies.job_id = int_dependency_progress.job_id
            and int_dependencies.upstream_id = int_dependency_progress.upstream_id

),

with_events as (

    select
        joined.*,
        int_upstreams_now.outcome as probe_outcome,
        int_upstreams_now.reason as probe_reason,
        int_upstreams_now.failing_since,
        if(
            joined.sensor_source = 'event_trigger',
            {{ open_slot_words('int_upstreams_now.position') }},
            null
        ) as open_slot,
        int_upstreams_now.upstream_value,
        int_upstreams_now.latest_event_tick,
        int_upstreams_now.latest_event_at,
        int_upstreams_now.recent_events,
        coalesce(
            int_upstreams_now.latest_event_tick > joined.consumed_through_tick,
            false
        ) as has_unconsumed_event,
        filter(
            int_upstreams_now.recent_events,
            recent -> recent.tick_number > joined.consumed_through_tick
        ) as unconsumed_events
    from joined
    left join int_upstreams_now
        on joined.upstream_id = int_upstreams_now.upstream_id

),

final as (

    select
        with_events.control_id,
        with_events.upstream_id,
        with_events.sensor_source,
        with_events.sensor_id,
        with_events.sensor_read_type,
        with_events.asset_description,
        with_events.upstream_key,
        with_events.upstream_value,
        with_events.preprocess_query,
        with_events.job_id,
        with_events.job_name,
        with_events.job_state,
        with_events.dependency_flag,
        with_events.is_in_controls,
        with_events.is_paused,
        with_events.is_required,
        with_events.probe_outcome,
        with_events.probe_reason,
        with_events.failing_since,
        with_events.open_slot,
        with_events.latest_event_tick,
        with_events.latest_event_at,
        with_events.recent_events,
        with_events.has_unconsumed_event,
        -- A paused row is left alone: its events wait for the day when it is unpaused.
        with_events.is_in_controls
        and with_events.has_unconsumed_event
        and not with_events.is_paused as is_consumable,
        -- What a pull consumer consumed may end before the latest event, where nothing was
        -- kept of the ticks between: the latest one stands in for them.
        coalesce(
            get(with_events.unconsumed_events, 0).tick_number,
            if(with_events.has_unconsumed_event, with_events.latest_event_tick, null)
        ) as oldest_unconsumed_tick,
        coalesce(
            get(with_events.unconsumed_events, 0).event_at,
            if(with_events.has_unconsumed_event, with_events.latest_event_at, null)
        ) as oldest_unconsumed_at,
        with_events.consumed_through_tick,
        with_events.from_tick,
        with_events.intent_id,
        with_events.attempt,
        with_events.run_id,
        with_events.run_status,
        with_events.run_message,
        with_events.run_control_status,
        coalesce(with_events.is_open or with_events.holds_job, false)
            as is_kept_by_run,
        with_events.is_open,
        with_events.holds_job,
        with_events.gives_back_events,
        with_events.is_last_of_job,
        with_events.decided_tick,
        with_events.decided_at,
        with_events.ended_at,
        with_events.run_recorded_at
    from with_events

)

select * from final

-- one row per job of the controls: its dependencies, and its newest run
-- Over 120 lines: dependencies and newest run come from one grouping, so that the rows are read once.
with

int_dependency_states as (

    select * from {{ ref('int_dependency_states') }}

),

scheduled_jobs as (

    select * from {{ ref('scheduled_jobs') }}

),

grouped as (

    select
        int_dependency_states.job_id,
        max(int_dependency_states.job_name) as job_name,
        count_if(int_dependency_states.is_in_controls) as control_count,
        bool_and(int_dependency_states.is_paused) as is_paused,
        count_if(int_dependency_states.is_required) as required_count,
        count_if(int_dependency_states.is_consumable) as unconsumed_upstream_count,
        min(
            if(
                int_dependency_states.is_consumable,
                int_dependency_states.oldest_unconsumed_tick,
                null
            )
        ) as oldest_unconsumed_tick,
        min(
            if(
                int_dependency_states.is_consumable,
                int_dependency_states.oldest_unconsumed_at,
                null
            )
        ) as oldest_unconsumed_at,
        collect_list(
            if(
                int_dependency_states.is_consumable,
                named_struct(
                    'upstream_id', int_dependency_states.upstream_id,
                    'from_tick', int_dependency_states.consumed_through_tick,
                    'through_tick', int_dependency_states.latest_event_tick
                ),
                null
            )
        ) as unconsumed_events,
        collect_list(
            if(
                int_dependency_states.is_required
                and (
                    int_dependency_states.is_paused
                    or not int_dependency_states.has_unconsumed_event
                ),
                named_struct(
                    'sensor_id', int_dependency_states.sensor_id,
                    'is_paused', int_dependency_states.is_paused,
                    'probe_outcome', int_dependency_states.probe_outcome,
                    'probe_reason', int_dependency_states.probe_reason,
                    'failing_since', int_dependency_states.failing_since,
                    'latest_event_at', int_dependency_states.latest_event_at,
                    'decided_at', int_dependency_states.decided_at,
                    'is_trigger', coalesce(
                        int_dependency_states.sensor_source = 'event_trigger', false
                    ),
                    'open_slot', int_dependency_states.open_slot
                ),
                null
            )
        ) as unready,
        max(
            if(
                int_dependency_states.is_last_of_job,
                named_struct(
                    'intent_id', int_dependency_states.intent_id,
                    'attempt', int_dependency_states.attempt,
                    'run_id', int_dependency_states.run_id,
                    'run_status', int_dependency_states.run_status,
                    'message', int_dependency_states.run_message,
                    'ended_at', int_dependency_states.ended_at,
                    'recorded_at', int_dependency_states.run_recorded_at,
                    'decided_tick', int_dependency_states.decided_tick,
                    'decided_at', int_dependency_states.decided_at,
                    'is_open', int_dependency_states.is_open,
                    'holds_job', int_dependency_states.holds_job,
                    'gives_back_events', int_dependency_states.gives_back_events
                ),
                null
            )
        ) as last_run
    from int_dependency_states
    group by int_dependency_states.job_id

),

final as (

    select
        grouped.job_id,
        grouped.job_name,
        grouped.is_paused,
        scheduled_jobs.job_id is not null as is_on_own_schedule,
        grouped.required_count,
        grouped.unconsumed_upstream_count,
        grouped.oldest_unconsumed_tick,
        grouped.oldest_unconsumed_at,
        sort_array(grouped.unconsumed_events) as unconsumed_events,
        sort_array(grouped.unready) as unready,
        grouped.last_run.intent_id,
        grouped.last_run.attempt,
        grouped.last_run.run_id,
        grouped.last_run.run_status,
        grouped.last_run.message as run_message,
        grouped.last_run.ended_at as run_ended_at,
        grouped.last_run.recorded_at as run_recorded_at,
        -- Neither what a pull consumer started nor a run that was started manually and has
        -- succeeded counts towards the limit of starts.
        if(
            scheduled_jobs.job_id is null
            and (grouped.last_run.is_open or grouped.last_run.holds_job),
            grouped.last_run.decided_tick,
            null
        ) as decided_tick,
        grouped.last_run.decided_at,
        -- An open run of a pull consumer blocks nothing: its process may have died.
        coalesce(
            grouped.last_run.is_open
            and not coalesce(grouped.last_run.gives_back_events, false),
            false
        ) as has_open_run,
        coalesce(grouped.last_run.holds_job, false) as is_held,
        coalesce(
            grouped.last_run.gives_back_events
            and not coalesce(grouped.last_run.is_open, false),
            false
        ) as is_retry
    from grouped
    left join scheduled_jobs
        on grouped.job_id = scheduled_jobs.job_id
    where grouped.control_count > 0

)

select * from final

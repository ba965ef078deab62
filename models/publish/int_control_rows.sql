-- one row per control row, as the control table shows it: configuration, status and its times
with

int_dependency_states as (

    select * from {{ ref('int_dependency_states') }}
    where is_in_controls
        -- A trigger is a dependency like any other; the control table shows the ten columns' rows.
        and not sensor_source <=> 'event_trigger'

),

with_status as (

    select
        int_dependency_states.*,
        -- No run has processed what an operator discarded, though it counts as consumed.
        coalesce(int_dependency_states.run_status = 'RELEASED', false) as is_given_up,
        case
            -- What a run has consumed shows the run's status until it ends.
            when int_dependency_states.is_kept_by_run
                then int_dependency_states.run_control_status
            when int_dependency_states.has_unconsumed_event
                then 'NEW_EVENT_AVAILABLE'
            else int_dependency_states.run_control_status
        end as status
    from int_dependency_states

),

with_change as (

    select
        with_status.*,
        case
            -- The answer of the Jobs API may come later than the start; the status does not change.
            when with_status.is_open
                then with_status.decided_at
            when with_status.is_kept_by_run
                then with_status.run_recorded_at
            when with_status.has_unconsumed_event
                -- An event that came while a run went on is shown from the run's end on.
                then greatest(
                        with_status.oldest_unconsumed_at,
                        with_status.run_recorded_at
                    )
            else with_status.run_recorded_at
        end as status_changed_at
    from with_status

),

final as (

    select
        with_change.control_id,
        with_change.sensor_source,
        with_change.sensor_id,
        with_change.sensor_read_type,
        with_change.asset_description,
        with_change.upstream_key,
        with_change.preprocess_query,
        with_change.latest_event_at as latest_event_fetched_timestamp,
        cast(with_change.job_id as string) as trigger_job_id,
        with_change.job_name as trigger_job_name,
        with_change.status,
        date_format(
            with_change.status_changed_at,
            "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
        ) as status_change_timestamp,
        with_change.decided_at as job_start_timestamp,
        with_change.ended_at as job_end_timestamp,
        with_change.job_state,
        with_change.dependency_flag,
        with_change.upstream_value,
        -- The first event that no successful run has consumed.
        coalesce(
            get(
                filter(
                    with_change.recent_events,
                    recent -> recent.tick_number > if(
                        with_change.is_kept_by_run or with_change.is_given_up,
                        with_change.from_tick,
                        with_change.consumed_through_tick
                    )
                ),
                0
            ).event_at,
            with_change.oldest_unconsumed_at
        ) as acquired_at,
        with_change.is_given_up,
        with_change.run_recorded_at
    from with_change

)

select * from final

-- one row per job whose newest run goes on, or holds the job until a run of it succeeds
with

int_dependency_progress as (

    select * from {{ ref('int_dependency_progress') }}

),

int_runs_now as (

    select * from {{ ref('int_runs_now') }}

),

followed as (

    select * from int_dependency_progress
    where is_last_of_job
        and (is_open or holds_job)
        -- A pull consumer reports its own end; the Jobs API is not polled.
        and not coalesce(is_open and gives_back_events, false)

),

final as (

    select
        int_runs_now.tick_number,
        int_runs_now.step_number,
        int_runs_now.recorded_at,
        int_runs_now.job_id,
        int_runs_now.job_name,
        int_runs_now.intent_id,
        int_runs_now.attempt,
        int_runs_now.token,
        int_runs_now.run_id,
        int_runs_now.run_status,
        int_runs_now.reported_by,
        followed.is_open,
        followed.holds_job,
        int_runs_now.consumed,
        int_runs_now.event_count,
        int_runs_now.event_ids,
        int_runs_now.parameters,
        int_runs_now.decided_tick,
        int_runs_now.decided_at,
        int_runs_now.started_at,
        int_runs_now.ended_at,
        int_runs_now.life_cycle_state,
        int_runs_now.result_state,
        int_runs_now.state,
        int_runs_now.termination_code,
        int_runs_now.message,
        int_runs_now.run_page_url
    from followed
    inner join int_runs_now
        on followed.intent_id = int_runs_now.intent_id
            and followed.attempt = int_runs_now.attempt

)

select * from final

-- one row per job and upstream that a run of the job ever took, as the newest such run left it
with

dependency_state as (

    select * from {{ ref('dependency_state') }}

),

ledger_runs as (

    select * from {{ ref('ledger_runs') }} as ledger_runs
    where {{ is_in_tail('ledger_runs') }}

),

run_statuses as (

    select * from {{ ref('run_statuses') }}

),

taken as (

    select
        ledger_runs.job_id,
        explode(ledger_runs.consumed) as consumed,
        ledger_runs.tick_number,
        ledger_runs.step_number,
        ledger_runs.recorded_at,
        ledger_runs.intent_id,
        ledger_runs.attempt,
        ledger_runs.run_status,
        ledger_runs.run_id,
        ledger_runs.message,
        ledger_runs.decided_tick,
        ledger_runs.decided_at,
        ledger_runs.ended_at
    from ledger_runs

),

known as (

    select
        dependency_state.job_id,
        dependency_state.upstream_id,
        dependency_state.from_tick,
        dependency_state.through_tick,
        dependency_state.tick_number,
        dependency_state.step_number,
        dependency_state.recorded_at,
        dependency_state.intent_id,
        dependency_state.attempt,
        dependency_state.run_status,
        dependency_state.run_id,
        dependency_state.message,
        dependency_state.decided_tick,
        dependency_state.decided_at,
        dependency_state.ended_at
    from dependency_state

    union all

    select
        taken.job_id,
        taken.consumed.upstream_id,
        taken.consumed.from_tick,
        taken.consumed.through_tick,
        taken.tick_number,
        taken.step_number,
        taken.recorded_at,
        taken.intent_id,
        taken.attempt,
        taken.run_status,
        taken.run_id,
        taken.message,
        taken.decided_tick,
        taken.decided_at,
        taken.ended_at
    from taken

),

numbered as (

    select
        known.*,
        row_number() over (
            partition by known.job_id, known.upstream_id
            order by known.tick_number desc, known.step_number desc
        ) as newest_first
    from known

),

-- Only now, with each upstream once: a step that is in the state and in the tail must count once.
newest as (

    select
        numbered.*,
        row_number() over (
            partition by numbered.job_id
            order by
                numbered.tick_number desc,
                numbered.step_number desc,
                numbered.upstream_id asc
        ) as newest_of_job
    from numbered
    where numbered.newest_first = 1

),

final as (

    select
        newest.job_id,
        newest.upstream_id,
        newest.from_tick,
        newest.through_tick,
        -- A run that gave its events back has consumed nothing.
        if(
            run_statuses.gives_back_events,
            newest.from_tick,
            newest.through_tick
        ) as consumed_through_tick,
        newest.tick_number,
        newest.step_number,
        newest.recorded_at,
        newest.intent_id,
        newest.attempt,
        newest.run_status,
        run_statuses.control_status,
        run_statuses.is_open,
        run_statuses.holds_job,
        run_statuses.gives_back_events,
        newest.run_id,
        newest.message,
        newest.decided_tick,
        newest.decided_at,
        newest.ended_at,
        newest.newest_of_job = 1 as is_last_of_job
    from newest
    inner join run_statuses
        on newest.run_status = run_statuses.run_status

)

select * from final

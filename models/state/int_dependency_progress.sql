-- one row per job and upstream that a run of the job ever consumed, as of the newest such run
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

consumed_ranges as (

    select
        ledger_runs.*,
        inline(ledger_runs.consumed) as (upstream_id, from_tick, through_tick)
    from ledger_runs

),

{{ newest_row('dependency_state', ['dependency_state', 'consumed_ranges']) }},

-- Only now, with each upstream once: a step that is in the state and in the tail must count once.
ranked as (

    select
        newest.*,
        row_number() over (
            partition by newest.job_id
            order by
                newest.tick_number desc,
                newest.step_number desc,
                newest.upstream_id asc
        ) as newest_of_job
    from newest

),

final as (

    select
        ranked.job_id,
        ranked.upstream_id,
        ranked.from_tick,
        ranked.through_tick,
        -- A run whose events are requeued has consumed nothing.
        if(
            run_statuses.gives_back_events,
            ranked.from_tick,
            ranked.through_tick
        ) as consumed_through_tick,
        ranked.tick_number,
        ranked.step_number,
        ranked.recorded_at,
        ranked.intent_id,
        ranked.attempt,
        ranked.run_status,
        run_statuses.control_status,
        run_statuses.is_open,
        run_statuses.holds_job,
        run_statuses.gives_back_events,
        ranked.run_id,
        ranked.message,
        ranked.decided_tick,
        ranked.decided_at,
        ranked.ended_at,
        ranked.newest_of_job = 1 as is_last_of_job
    from ranked
    inner join run_statuses
        on ranked.run_status = run_statuses.run_status

)

select * from final

-- one row per intent and attempt, as the newest step of its life left it
with

run_state as (

    select * from {{ ref('run_state') }}

),

ledger_runs as (

    select * from {{ ref('ledger_runs') }} as ledger_runs
    where {{ is_in_tail('ledger_runs') }}

),

known as (

    select
        run_state.job_id,
        run_state.job_name,
        run_state.intent_id,
        run_state.attempt,
        run_state.token,
        run_state.run_id,
        run_state.run_status,
        run_state.reported_by,
        run_state.consumed,
        run_state.event_ids,
        run_state.event_count,
        run_state.parameters,
        run_state.decided_tick,
        run_state.decided_at,
        run_state.started_at,
        run_state.ended_at,
        run_state.life_cycle_state,
        run_state.result_state,
        run_state.state,
        run_state.termination_code,
        run_state.message,
        run_state.run_page_url,
        run_state.tick_number,
        run_state.step_number,
        run_state.recorded_at
    from run_state

    union all

    select
        ledger_runs.job_id,
        ledger_runs.job_name,
        ledger_runs.intent_id,
        ledger_runs.attempt,
        ledger_runs.token,
        ledger_runs.run_id,
        ledger_runs.run_status,
        ledger_runs.reported_by,
        ledger_runs.consumed,
        ledger_runs.event_ids,
        ledger_runs.event_count,
        ledger_runs.parameters,
        ledger_runs.decided_tick,
        ledger_runs.decided_at,
        ledger_runs.started_at,
        ledger_runs.ended_at,
        ledger_runs.life_cycle_state,
        ledger_runs.result_state,
        ledger_runs.state,
        ledger_runs.termination_code,
        ledger_runs.message,
        ledger_runs.run_page_url,
        ledger_runs.tick_number,
        ledger_runs.step_number,
        ledger_runs.recorded_at
    from ledger_runs

),

numbered as (

    select
        known.*,
        row_number() over (
            partition by known.intent_id, known.attempt
            order by known.tick_number desc, known.step_number desc
        ) as newest_first
    from known

),

final as (

    select
        numbered.job_id,
        numbered.job_name,
        numbered.intent_id,
        numbered.attempt,
        numbered.token,
        numbered.run_id,
        numbered.run_status,
        numbered.reported_by,
        numbered.consumed,
        numbered.event_ids,
        numbered.event_count,
        numbered.parameters,
        numbered.decided_tick,
        numbered.decided_at,
        numbered.started_at,
        numbered.ended_at,
        numbered.life_cycle_state,
        numbered.result_state,
        numbered.state,
        numbered.termination_code,
        numbered.message,
        numbered.run_page_url,
        numbered.tick_number,
        numbered.step_number,
        numbered.recorded_at
    from numbered
    where numbered.newest_first = 1

)

select * from final

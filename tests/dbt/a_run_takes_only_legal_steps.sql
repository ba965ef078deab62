-- one row per step of a run that may not follow the step before it
with

ledger_runs as (

    select * from {{ ref('ledger_runs') }}

),

run_statuses as (

    select * from {{ ref('run_statuses') }}

),

steps as (

    select
        ledger_runs.job_id,
        ledger_runs.intent_id,
        ledger_runs.attempt,
        ledger_runs.tick_number,
        ledger_runs.step_number,
        ledger_runs.run_status,
        lag(ledger_runs.run_status) over (
            partition by ledger_runs.intent_id, ledger_runs.attempt
            order by ledger_runs.tick_number, ledger_runs.step_number
        ) as previous_status
    from ledger_runs

),

final as (

    select
        steps.job_id,
        steps.intent_id,
        steps.attempt,
        steps.tick_number,
        steps.step_number,
        steps.previous_status,
        steps.run_status
    from steps
    left join run_statuses as before_it
        on steps.previous_status = before_it.run_status
    where not case
        when steps.previous_status is null
            then steps.run_status = 'INTENDED'
        -- An intent may be recorded again, with the latest reason why it has no answer.
        when steps.previous_status = 'INTENDED'
            then steps.run_status not in ('SUCCEEDED_ELSEWHERE', 'RETRY_REQUESTED')
        when before_it.is_open
            then steps.run_status not in (
                'INTENDED', 'STARTED', 'REFUSED', 'SUCCEEDED_ELSEWHERE', 'RETRY_REQUESTED'
            )
        when before_it.holds_job
            then steps.run_status in ('SUCCEEDED_ELSEWHERE', 'RETRY_REQUESTED')
        -- What ended well, or gave its events back, stays so.
        else false
    end

)

select * from final

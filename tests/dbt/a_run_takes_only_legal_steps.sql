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
        ledger_runs.reported_by,
        ledger_runs.run_status in ('INTENDED', 'STARTED', 'REFUSED', 'PARKED')
            as is_before_the_end,
        ledger_runs.run_status in (
            'SUCCEEDED_ELSEWHERE', 'RETRY_REQUESTED', 'RELEASED'
        ) as is_after_the_end,
        lag(ledger_runs.run_status) over (
            partition by ledger_runs.intent_id, ledger_runs.attempt
            order by ledger_runs.tick_number, ledger_runs.step_number
        ) as previous_status
    from ledger_runs

),

judged as (

    select
        steps.*,
        case
            -- What was passed to a pull consumer may grow until the job has processed it.
            when steps.reported_by = 'job'
                then steps.run_status in ('ACQUIRED', 'SUCCEEDED')
                    and coalesce(steps.previous_status, 'ACQUIRED') = 'ACQUIRED'
            -- An import records the last run of an earlier sensor, and adds to what a run has consumed.
            when steps.reported_by = 'import'
                then case
                        when steps.previous_status is null
                            then steps.run_status in ('SUCCEEDED', 'PARKED')
                        when before_it.is_open or before_it.holds_job
                            then steps.run_status = steps.previous_status
                        else steps.run_status = 'SUCCEEDED'
                    end
            -- A run that somebody started by hand is recorded once, when it reports its success.
            when steps.previous_status is null
                then steps.run_status = 'INTENDED'
                    or (steps.run_status = 'SUCCEEDED' and steps.reported_by = 'notice')
            -- An intent may be recorded again, with the latest reason why it has no answer.
            when steps.previous_status = 'INTENDED'
                then not steps.is_after_the_end
            -- So may a run that goes on, with what a person should know of it; of one that is
            -- over, the outcome may be in doubt.
            when steps.previous_status = 'STARTED'
                and steps.run_status in ('STARTED', 'PARKED')
                then true
            when before_it.is_open
                then not steps.is_before_the_end and not steps.is_after_the_end
            when before_it.holds_job
                then steps.is_after_the_end
            -- What ended well, or had its events requeued, stays so.
            else false
        end as is_legal
    from steps
    left join run_statuses as before_it
        on steps.previous_status = before_it.run_status

),

final as (

    select
        judged.job_id,
        judged.intent_id,
        judged.attempt,
        judged.tick_number,
        judged.step_number,
        judged.previous_status,
        judged.run_status
    from judged
    where not judged.is_legal

)

select * from final

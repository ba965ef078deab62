{{
    config(
        materialized='incremental',
        incremental_strategy='merge',
        unique_key=['job_id', 'upstream_id']
    )
}}
-- one row per job and upstream: the newest run that took the upstream's events
with

ledger_runs as (

    select * from {{ ref('ledger_runs') }} as ledger_runs
    {% if is_incremental() %}
    where {{ is_in_tail('ledger_runs', after='fold_after') }}
    {% endif %}

),

taken as (

    select
        explode(ledger_runs.consumed) as consumed,
        ledger_runs.job_id,
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

flattened as (

    select
        taken.consumed.upstream_id,
        taken.consumed.from_tick,
        taken.consumed.through_tick,
        taken.job_id,
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
        flattened.*,
        row_number() over (
            partition by flattened.job_id, flattened.upstream_id
            order by flattened.tick_number desc, flattened.step_number desc
        ) as newest_first
    from flattened

),

final as (

    select
        numbered.job_id,
        numbered.upstream_id,
        numbered.from_tick,
        numbered.through_tick,
        numbered.tick_number,
        numbered.step_number,
        numbered.recorded_at,
        numbered.intent_id,
        numbered.attempt,
        numbered.run_status,
        numbered.run_id,
        numbered.message,
        numbered.decided_tick,
        numbered.decided_at,
        numbered.ended_at
    from numbered
    where numbered.newest_first = 1

)

select * from final

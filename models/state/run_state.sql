{{
    config(
        materialized='incremental',
        incremental_strategy='merge',
        unique_key=['intent_id', 'attempt']
    )
}}
-- one row per intent and attempt: the newest step of its life, folded from the ledger
with

ledger_runs as (

    select * from {{ ref('ledger_runs') }} as ledger_runs
    {% if is_incremental() %}
    where {{ is_in_tail('ledger_runs', after='fold_after') }}
    {% endif %}

),

numbered as (

    select
        ledger_runs.*,
        row_number() over (
            partition by ledger_runs.intent_id, ledger_runs.attempt
            order by ledger_runs.tick_number desc, ledger_runs.step_number desc
        ) as newest_first
    from ledger_runs

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

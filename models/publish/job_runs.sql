-- one row per started run: an intent and attempt, with everything that the Jobs API reported of it
with

int_runs_now as (

    select * from {{ ref('int_runs_now') }}

),

final as (

    select
        int_runs_now.job_id,
        int_runs_now.job_name,
        int_runs_now.intent_id,
        int_runs_now.attempt,
        int_runs_now.token,
        int_runs_now.run_id,
        int_runs_now.run_status,
        int_runs_now.reported_by,
        int_runs_now.decided_at,
        int_runs_now.started_at,
        int_runs_now.ended_at,
        int_runs_now.event_count,
        int_runs_now.event_ids,
        int_runs_now.consumed,
        int_runs_now.life_cycle_state,
        int_runs_now.result_state,
        int_runs_now.state,
        int_runs_now.termination_code,
        int_runs_now.message,
        int_runs_now.run_page_url,
        int_runs_now.recorded_at
    from int_runs_now

)

select * from final

{{
    config(
        materialized='incremental',
        incremental_strategy='merge',
        unique_key=['job_id', 'upstream_id']
    )
}}
-- one row per job and upstream: the newest run that consumed the upstream's events
with

ledger_runs as (

    select * from {{ ref('ledger_runs') }} as ledger_runs
    {% if is_incremental() %}
    where ledger_runs.tick_number > {{ var('fold_after') | int }}
    {% endif %}

),

consumed_ranges as (

    select
        ledger_runs.*,
        inline(ledger_runs.consumed) as (upstream_id, from_tick, through_tick)
    from ledger_runs

),

{{ newest_row('dependency_state', ['consumed_ranges']) }}

select * from newest

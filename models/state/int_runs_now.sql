-- one row per intent and attempt, as of its newest step
with

run_state as (

    select * from {{ ref('run_state') }}

),

ledger_runs as (

    select * from {{ ref('ledger_runs') }} as ledger_runs
    where {{ is_in_tail('ledger_runs') }}

),

{{ newest_row('run_state', ['run_state', 'ledger_runs']) }}

select * from newest

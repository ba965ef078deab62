{{
    config(
        materialized='incremental',
        incremental_strategy='merge',
        unique_key=['intent_id', 'attempt']
    )
}}
-- one row per intent and attempt: its newest step, compacted from the ledger
with

ledger_runs as (

    select * from {{ ref('ledger_runs') }} as ledger_runs
    {% if is_incremental() %}
    where ledger_runs.tick_number > {{ var('fold_after') | int }}
    {% endif %}

),

{{ newest_row('run_state', ['ledger_runs']) }}

select * from newest

{{
    config(
        materialized='incremental',
        incremental_strategy='merge',
        unique_key='upstream_id'
    )
}}
-- one row per upstream: its newest probe row, compacted from the ledger
with

ledger_probes as (

    select * from {{ ref('ledger_probes') }} as ledger_probes
    {% if is_incremental() %}
    where ledger_probes.tick_number > {{ var('fold_after') | int }}
    {% endif %}

),

{{ newest_row('upstream_state', ['ledger_probes']) }}

select * from newest

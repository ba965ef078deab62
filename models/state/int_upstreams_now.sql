-- one row per upstream that was ever probed, as of its newest probe row
with

upstream_state as (

    select * from {{ ref('upstream_state') }}

),

ledger_probes as (

    select * from {{ ref('ledger_probes') }} as ledger_probes
    where {{ is_in_tail('ledger_probes') }}

),

{{ newest_row('upstream_state', ['upstream_state', 'ledger_probes']) }}

select * from newest

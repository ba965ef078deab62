{{
    config(
        materialized='incremental',
        incremental_strategy='merge',
        unique_key='upstream_id'
    )
}}
-- one row per upstream: its newest probe row, folded from the ledger
with

ledger_probes as (

    select * from {{ ref('ledger_probes') }} as ledger_probes
    {% if is_incremental() %}
    where {{ is_in_tail('ledger_probes', after='fold_after') }}
    {% endif %}

),

numbered as (

    select
        ledger_probes.*,
        row_number() over (
            partition by ledger_probes.upstream_id
            order by ledger_probes.tick_number desc
        ) as newest_first
    from ledger_probes

),

final as (

    select
        numbered.upstream_id,
        numbered.tick_number,
        numbered.recorded_at,
        numbered.outcome,
        numbered.reason,
        numbered.position,
        numbered.upstream_value,
        numbered.latest_event_tick,
        numbered.latest_event_at,
        numbered.recent_events,
        numbered.failing_since
    from numbered
    where numbered.newest_first = 1

)

select * from final

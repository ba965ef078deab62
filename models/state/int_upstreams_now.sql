-- one row per upstream that was ever looked at, as its newest probe row left it
with

upstream_state as (

    select * from {{ ref('upstream_state') }}

),

ledger_probes as (

    select * from {{ ref('ledger_probes') }} as ledger_probes
    where {{ is_in_tail('ledger_probes') }}

),

known as (

    select
        upstream_state.upstream_id,
        upstream_state.tick_number,
        upstream_state.recorded_at,
        upstream_state.outcome,
        upstream_state.reason,
        upstream_state.position,
        upstream_state.upstream_value,
        upstream_state.latest_event_tick,
        upstream_state.latest_event_at,
        upstream_state.recent_events,
        upstream_state.failing_since
    from upstream_state

    union all

    select
        ledger_probes.upstream_id,
        ledger_probes.tick_number,
        ledger_probes.recorded_at,
        ledger_probes.outcome,
        ledger_probes.reason,
        ledger_probes.position,
        ledger_probes.upstream_value,
        ledger_probes.latest_event_tick,
        ledger_probes.latest_event_at,
        ledger_probes.recent_events,
        ledger_probes.failing_since
    from ledger_probes

),

numbered as (

    select
        known.*,
        row_number() over (
            partition by known.upstream_id
            order by known.tick_number desc
        ) as newest_first
    from known

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

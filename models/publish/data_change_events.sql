-- one row per data-change event
with

ledger_data_change_events as (

    select * from {{ ref('ledger_data_change_events') }}

),

final as (

    select
        ledger_data_change_events.event_ts,
        ledger_data_change_events.`table`,
        ledger_data_change_events.partition,
        ledger_data_change_events.snapshot_id,
        ledger_data_change_events.snapshot_ts,
        ledger_data_change_events.prev_snapshot_id,
        ledger_data_change_events.table_format,
        ledger_data_change_events.operation_type,
        ledger_data_change_events.tags,
        ledger_data_change_events.event_id,
        ledger_data_change_events.upstream_id,
        ledger_data_change_events.tick_number
    from ledger_data_change_events

)

select * from final

-- one row per change, as its newest data-change event describes it
with

ledger_data_change_events as (

    select * from {{ ref('ledger_data_change_events') }}

),

originals as (

    select
        ledger_data_change_events.*,
        -- Events recorded before changes had names of their own are one each.
        coalesce(
            ledger_data_change_events.change_id,
            ledger_data_change_events.event_id
        ) as change_name
    from ledger_data_change_events
    -- What a trigger passes on is a copy of an event that is here already.
    where ledger_data_change_events.upstream_id not like 'trigger:%'

),

-- By columns alone, so that a condition on the table or the time reaches the files.
numbered as (

    select
        originals.*,
        row_number() over (
            partition by
                originals.event_ts,
                originals.`table`,
                originals.change_name
            order by
                originals.tick_number desc,
                cardinality(originals.tags) desc,
                originals.event_id asc
        ) as newest_first
    from originals

),

final as (

    select
        numbered.event_ts,
        numbered.`table`,
        numbered.partition,
        numbered.snapshot_id,
        numbered.snapshot_ts,
        numbered.prev_snapshot_id,
        numbered.table_format,
        numbered.operation_type,
        numbered.tags,
        numbered.change_name as event_id,
        numbered.upstream_id,
        numbered.tick_number
    from numbered
    where numbered.newest_first = 1

)

select * from final

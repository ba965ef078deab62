-- one row per data-change event and partition that it touched; one without partitions has one row
with

ledger_data_change_events as (

    select * from {{ ref('ledger_data_change_events') }}
    -- What a trigger passed to its job is a copy of an event.
    where upstream_id not like 'trigger:%'

),

with_partitions as (

    select
        ledger_data_change_events.tick_number,
        ledger_data_change_events.event_id,
        ledger_data_change_events.tags,
        {{ table_key('ledger_data_change_events.`table`') }} as table_key,
        xxhash64(
            coalesce(
                ledger_data_change_events.change_id, ledger_data_change_events.event_id
            )
        ) as change_key,
        explode_outer(
            -- What was deleted is a change of the table, and no partition that has come.
            if(
                ledger_data_change_events.operation_type = 'DELETE',
                null,
                from_json(
                    coalesce(
                        concat(
                            '[[',
                            array_join(ledger_data_change_events.partition, ','),
                            ']]'
                        ),
                        ledger_data_change_events.tags['partitions']
                    ),
                    'array<array<string>>'
                )
            )
        ) as levels
    from ledger_data_change_events

),

final as (

    select
        with_partitions.tick_number,
        -- Ticks that lie near each other lie in one folder: a query for new events reads few.
        cast(with_partitions.tick_number div 10000 as int) as era,
        cast(pmod(with_partitions.table_key, 16) as int) as bucket,
        with_partitions.table_key,
        if(
            with_partitions.levels is null,
            null,
            -- Text is compared with text, whether the event has "5" or 5.
            xxhash64(
                with_partitions.table_key,
                array_join(with_partitions.levels, char(31), 'null')
            )
        ) as partition_key,
        with_partitions.event_id,
        with_partitions.change_key,
        transform(
            map_entries(
                map_filter(with_partitions.tags, (name, text) -> name != 'partitions')
            ),
            tag -> xxhash64(tag.key, tag.value)
        ) as tag_keys
    from with_partitions

)

select * from final

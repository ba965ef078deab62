-- one row per slot that the newest look has to decide and table of its trigger: the events that satisfy it
with

int_trigger_partitions as (

    select * from {{ ref('int_trigger_partitions') }}

),

int_event_partitions as (

    select * from {{ ref('int_event_partitions') }} as int_event_partitions
    where {{ is_in_tail('int_event_partitions') }}

),

event_partitions as (

    select * from {{ ref('event_partitions') }}

),

with_tail as (

    select
        int_trigger_partitions.upstream_id,
        int_trigger_partitions.slot,
        int_trigger_partitions.waits_for,
        int_trigger_partitions.is_slot_new,
        int_trigger_partitions.is_ready,
        int_trigger_partitions.bucket,
        int_trigger_partitions.partition_key,
        int_trigger_partitions.required_tag_keys,
        int_event_partitions.tick_number,
        int_event_partitions.event_id,
        int_event_partitions.change_key,
        count(int_event_partitions.event_id) over (
            partition by int_trigger_partitions.upstream_id, int_trigger_partitions.slot
        ) as tail_count
    from int_trigger_partitions
    left join int_event_partitions
        on int_trigger_partitions.partition_key = int_event_partitions.partition_key
            and cardinality(
                array_except(
                    int_trigger_partitions.required_tag_keys,
                    int_event_partitions.tag_keys
                )
            ) = 0

),

-- All history is asked for a slot that has just opened, and again when something came that it waits
-- for, or when it is its turn: nothing else can have changed.
to_decide as (

    select * from with_tail
    where is_slot_new
        or is_ready
        or tail_count > 0

),

in_history as (

    select /*+ broadcast(to_decide) */
        to_decide.upstream_id,
        to_decide.slot,
        to_decide.waits_for,
        event_partitions.tick_number,
        event_partitions.event_id,
        event_partitions.change_key
    from event_partitions
    inner join to_decide
        on event_partitions.bucket = to_decide.bucket
            and event_partitions.partition_key = to_decide.partition_key
    where cardinality(
            array_except(to_decide.required_tag_keys, event_partitions.tag_keys)
        ) = 0

),

found as (

    select
        to_decide.upstream_id,
        to_decide.slot,
        to_decide.waits_for,
        to_decide.tick_number,
        to_decide.event_id,
        to_decide.change_key
    from to_decide

    union all

    select * from in_history

),

-- A change that two have told of, or that the fold and the tail both have, counts once.
by_change as (

    select
        found.upstream_id,
        found.slot,
        found.waits_for,
        found.change_key,
        max(
            if(
                found.event_id is null,
                null,
                named_struct(
                    'tick_number', found.tick_number,
                    'event_id', found.event_id
                )
            )
        ) as event
    from found
    group by found.upstream_id, found.slot, found.waits_for, found.change_key

),

final as (

    select
        by_change.upstream_id,
        by_change.slot,
        by_change.waits_for,
        sort_array(collect_list(by_change.event)) as events
    from by_change
    group by by_change.upstream_id, by_change.slot, by_change.waits_for

)

select * from final

-- one row per open slot of a partition trigger and table of the trigger: the events that satisfy it
-- Over 120 lines: the tail decides for which slots the state table is read at all.
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
        int_trigger_partitions.*,
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

-- All history is searched for a slot that has just opened, and again when something came that it waits
-- for, or when it is next: nothing else can have changed. What is known of the slot goes along,
-- so that it is not read again.
with_decision as (

    select
        with_tail.upstream_id,
        with_tail.slot,
        with_tail.waits_for,
        with_tail.bucket,
        with_tail.partition_key,
        with_tail.required_tag_keys,
        with_tail.tick_number,
        with_tail.event_id,
        with_tail.change_key,
        named_struct(
            'missing_before', with_tail.missing_before,
            'expires_at', with_tail.expires_at,
            'is_overdue', with_tail.is_overdue,
            'may_release', with_tail.may_release,
            'is_decided', with_tail.is_slot_new
            or with_tail.is_ready
            or with_tail.tail_count > 0
        ) as about
    from with_tail

),

to_decide as (

    select distinct
        with_decision.upstream_id,
        with_decision.slot,
        with_decision.waits_for,
        with_decision.bucket,
        with_decision.partition_key,
        with_decision.required_tag_keys,
        with_decision.about
    from with_decision
    where with_decision.about.is_decided

),

found as (

    select
        with_decision.upstream_id,
        with_decision.slot,
        with_decision.waits_for,
        with_decision.about,
        with_decision.tick_number,
        with_decision.event_id,
        with_decision.change_key
    from with_decision

    union all

    select /*+ broadcast(to_decide) */
        to_decide.upstream_id,
        to_decide.slot,
        to_decide.waits_for,
        to_decide.about,
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

-- A change of two events, or in both the state table and the tail, counts once.
by_change as (

    select
        found.upstream_id,
        found.slot,
        found.waits_for,
        found.about,
        found.change_key,
        max(
            if(found.event_id is null, null, struct(found.tick_number, found.event_id))
        ) as event
    from found
    group by
        found.upstream_id,
        found.slot,
        found.waits_for,
        found.about,
        found.change_key

),

final as (

    select
        by_change.upstream_id,
        by_change.slot,
        by_change.waits_for,
        by_change.about,
        sort_array(collect_list(by_change.event)) as events
    from by_change
    group by
        by_change.upstream_id,
        by_change.slot,
        by_change.waits_for,
        by_change.about

)

select * from final

-- one row per trigger with a result at the newest evaluation, or that cannot be evaluated
-- Over 120 lines: cursor, events and reason of a trigger have to come from one reading.
with

int_trigger_faults as (

    select * from {{ ref('int_trigger_faults') }}

),

int_trigger_due_slots as (

    select * from {{ ref('int_trigger_due_slots') }}

),

int_trigger_slot_results as (

    select * from {{ ref('int_trigger_slot_results') }}

),

int_trigger_changes as (

    select * from {{ ref('int_trigger_changes') }}

),

slots_by_trigger as (

    select
        int_trigger_slot_results.upstream_id,
        bool_or(
            int_trigger_slot_results.has_changed
            or int_trigger_slot_results.is_released
            or int_trigger_slot_results.is_expired
        ) as has_changed,
        sort_array(
            collect_list(
                if(
                    int_trigger_slot_results.is_released or int_trigger_slot_results.is_expired,
                    null,
                    struct(
                        int_trigger_slot_results.slot,
                        int_trigger_slot_results.missing,
                        int_trigger_slot_results.expires_at
                    )
                )
            )
        ) as waiting,
        max(
            if(
                int_trigger_slot_results.is_released,
                struct(int_trigger_slot_results.slot, int_trigger_slot_results.events),
                null
            )
        ) as released,
        sort_array(
            collect_list(
                if(
                    int_trigger_slot_results.is_expired,
                    concat(
                        'the slot ',
                        date_format(
                            int_trigger_slot_results.slot, "yyyy-MM-dd'T'HH:mm:ss'Z'"
                        ),
                        ' expired without ',
                        array_join(int_trigger_slot_results.missing, ' and ')
                    ),
                    null
                )
            )
        ) as expired
    from int_trigger_slot_results
    group by int_trigger_slot_results.upstream_id

),

joined as (

    select
        int_trigger_due_slots.upstream_id,
        int_trigger_due_slots.opened_through,
        int_trigger_due_slots.skipped_count,
        int_trigger_due_slots.pace_key,
        int_trigger_due_slots.is_repaced,
        int_trigger_due_slots.noted_due_at,
        coalesce(slots_by_trigger.has_changed, int_trigger_due_slots.takes_changes)
        or int_trigger_due_slots.skipped_count > 0 as has_outcome,
        least(
            int_trigger_due_slots.next_slot_at,
            array_min(
                transform(
                    slots_by_trigger.waiting,
                    each -> if(cardinality(each.missing) = 0, null, each.expires_at)
                )
            )
        ) as next_due_at,
        slots_by_trigger.waiting,
        slots_by_trigger.expired,
        -- What a snapshot trigger has not passed on belongs to its next slot.
        if(
            int_trigger_due_slots.trigger_type = 'SNAPSHOT'
            and cardinality(int_trigger_due_slots.opened) = 0,
            coalesce(
                int_trigger_changes.looked_through,
                int_trigger_due_slots.looked_through,
                int_trigger_due_slots.look_tick
            ),
            int_trigger_due_slots.look_tick
        ) as looked_through,
        coalesce(
            slots_by_trigger.released,
            if(
                cardinality(int_trigger_due_slots.opened) > 0,
                struct(
                    get(int_trigger_due_slots.opened, 0) as slot, int_trigger_changes.events
                ),
                null
            )
        ) as released
    from int_trigger_due_slots
    left join slots_by_trigger
        on int_trigger_due_slots.upstream_id = slots_by_trigger.upstream_id
    left join int_trigger_changes
        on int_trigger_due_slots.upstream_id = int_trigger_changes.upstream_id

),

final as (

    select
        joined.upstream_id,
        {{ trigger_position('joined') }} as position,
        coalesce(
            transform(
                joined.released.events,
                event -> named_struct(
                    'slot', joined.released.slot,
                    'tick_number', event.tick_number,
                    'event_id', event.event_id
                )
            ),
            array()
        ) as matched,
        {{ missed_slot_words('joined') }} as reason,
        cast(null as string) as failure
    from joined
    -- What it recorded of itself has to stay true, or it is read at every evaluation.
    where joined.has_outcome
        or joined.is_repaced
        or not joined.next_due_at <=> joined.noted_due_at

    union all

    select
        int_trigger_faults.upstream_id,
        cast(null as string) as position,
        array() as matched,
        cast(null as string) as reason,
        int_trigger_faults.fault as failure
    from int_trigger_faults

)

select * from final

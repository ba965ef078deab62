-- one row per trigger that has something to say at the newest look, or that cannot be evaluated
with

int_trigger_faults as (

    select * from {{ ref('int_trigger_faults') }}

),

int_trigger_clock as (

    select * from {{ ref('int_trigger_clock') }}

),

int_trigger_outcomes as (

    select * from {{ ref('int_trigger_outcomes') }}

),

int_trigger_changes as (

    select * from {{ ref('int_trigger_changes') }}

),

slots_by_trigger as (

    select
        int_trigger_outcomes.upstream_id,
        bool_or(
            int_trigger_outcomes.has_changed
            or int_trigger_outcomes.is_released
            or int_trigger_outcomes.is_expired
        ) as has_changed,
        sort_array(
            collect_list(
                if(
                    int_trigger_outcomes.is_released or int_trigger_outcomes.is_expired,
                    null,
                    struct(
                        int_trigger_outcomes.slot,
                        int_trigger_outcomes.missing,
                        int_trigger_outcomes.expires_at
                    )
                )
            )
        ) as waiting,
        max(
            if(
                int_trigger_outcomes.is_released,
                struct(int_trigger_outcomes.slot, int_trigger_outcomes.events),
                null
            )
        ) as released,
        sort_array(
            collect_list(
                if(
                    int_trigger_outcomes.is_expired,
                    concat(
                        'the slot ',
                        date_format(
                            int_trigger_outcomes.slot, "yyyy-MM-dd'T'HH:mm:ss'Z'"
                        ),
                        ' expired without ',
                        array_join(int_trigger_outcomes.missing, ' and ')
                    ),
                    null
                )
            )
        ) as expired
    from int_trigger_outcomes
    group by int_trigger_outcomes.upstream_id

),

joined as (

    select
        int_trigger_clock.upstream_id,
        int_trigger_clock.opened_through,
        int_trigger_clock.skipped_count,
        int_trigger_clock.pace_key,
        int_trigger_clock.is_repaced,
        int_trigger_clock.noted_due_at,
        coalesce(slots_by_trigger.has_changed, int_trigger_clock.takes_changes)
        or int_trigger_clock.skipped_count > 0 as has_outcome,
        least(
            int_trigger_clock.next_slot_at,
            array_min(
                transform(
                    slots_by_trigger.waiting,
                    each -> if(cardinality(each.missing) = 0, null, each.expires_at)
                )
            )
        ) as next_due_at,
        slots_by_trigger.waiting,
        slots_by_trigger.expired,
        -- What a snapshot trigger has not handed out is its next slot's to take.
        if(
            int_trigger_clock.trigger_type = 'SNAPSHOT'
            and cardinality(int_trigger_clock.opened) = 0,
            coalesce(
                int_trigger_changes.looked_through,
                int_trigger_clock.looked_through,
                int_trigger_clock.look_tick
            ),
            int_trigger_clock.look_tick
        ) as looked_through,
        coalesce(
            slots_by_trigger.released,
            if(
                cardinality(int_trigger_clock.opened) > 0,
                struct(
                    get(int_trigger_clock.opened, 0) as slot, int_trigger_changes.events
                ),
                null
            )
        ) as released
    from int_trigger_clock
    left join slots_by_trigger
        on int_trigger_clock.upstream_id = slots_by_trigger.upstream_id
    left join int_trigger_changes
        on int_trigger_clock.upstream_id = int_trigger_changes.upstream_id

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
    -- What it noted of itself has to stay true, or it is asked at every look.
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

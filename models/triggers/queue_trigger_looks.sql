-- one row per trigger that has something to say at the newest look
with

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
                    named_struct(
                        'slot', int_trigger_outcomes.slot,
                        'missing', int_trigger_outcomes.missing,
                        'expires_at', int_trigger_outcomes.expires_at
                    )
                )
            )
        ) as waiting,
        max(
            if(
                int_trigger_outcomes.is_released,
                named_struct(
                    'slot', int_trigger_outcomes.slot,
                    'events', int_trigger_outcomes.events
                ),
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
        int_trigger_clock.look_tick,
        int_trigger_clock.skipped_count,
        coalesce(
            slots_by_trigger.has_changed,
            int_trigger_changes.upstream_id is not null
        )
        or int_trigger_clock.skipped_count > 0 as has_something_to_say,
        slots_by_trigger.waiting,
        slots_by_trigger.expired,
        -- What came before the first slot of a new trigger is its own to take.
        if(
            int_trigger_changes.upstream_id is not null
            and cardinality(int_trigger_clock.opened) = 0,
            coalesce(int_trigger_changes.looked_through, int_trigger_clock.look_tick),
            int_trigger_clock.look_tick
        ) as looked_through,
        coalesce(
            slots_by_trigger.released.slot, get(int_trigger_clock.opened, 0)
        ) as released_slot,
        coalesce(
            slots_by_trigger.released.events,
            if(
                cardinality(int_trigger_clock.opened) > 0,
                int_trigger_changes.events,
                null
            )
        ) as events
    from int_trigger_clock
    left join slots_by_trigger
        on int_trigger_clock.upstream_id = slots_by_trigger.upstream_id
    left join int_trigger_changes
        on int_trigger_clock.upstream_id = int_trigger_changes.upstream_id

),

final as (

    select
        joined.upstream_id,
        to_json(
            named_struct(
                'opened_through', date_format(
                    joined.opened_through, "yyyy-MM-dd'T'HH:mm:ss'Z'"
                ),
                'waiting', coalesce(
                    transform(
                        joined.waiting,
                        each -> date_format(each.slot, "yyyy-MM-dd'T'HH:mm:ss'Z'")
                    ),
                    cast(array() as array<string>)
                ),
                'missing', transform(joined.waiting, each -> each.missing),
                'expires', transform(
                    joined.waiting,
                    each -> date_format(each.expires_at, "yyyy-MM-dd'T'HH:mm:ss'Z'")
                ),
                'looked_through', joined.looked_through
            )
        ) as position,
        transform(
            coalesce(
                joined.events,
                cast(array() as array<struct<tick_number: bigint, event_id: string>>)
            ),
            event -> named_struct(
                'slot', joined.released_slot,
                'tick_number', event.tick_number,
                'event_id', event.event_id
            )
        ) as matched,
        nullif(
            concat_ws(
                '; ',
                joined.expired,
                if(
                    joined.skipped_count > 0,
                    concat(
                        joined.skipped_count,
                        ' missed ',
                        if(joined.skipped_count = 1, 'slot was', 'slots were'),
                        ' left out; the newest that was due is ',
                        date_format(joined.opened_through, "yyyy-MM-dd'T'HH:mm:ss'Z'")
                    ),
                    null
                )
            ),
            ''
        ) as reason
    from joined
    where joined.has_something_to_say

)

select * from final

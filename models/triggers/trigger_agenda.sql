-- one row per type of trigger: when the first of its kind is to be asked again though no event came
with

int_trigger_clock as (

    select * from {{ ref('int_trigger_clock') }}

),

int_trigger_slots as (

    select * from {{ ref('int_trigger_slots') }}
    where not is_overdue
        and not was_satisfied

),

-- A slot that the newest look has opened is among them, whether or not the look is recorded yet.
expiries as (

    select
        int_trigger_slots.upstream_id,
        min(int_trigger_slots.expires_at) as expires_at
    from int_trigger_slots
    group by int_trigger_slots.upstream_id

),

final as (

    select
        int_trigger_clock.trigger_type,
        min(
            if(
                int_trigger_clock.is_idle,
                int_trigger_clock.next_due_at,
                least(
                    if(
                        int_trigger_clock.next_slot_at > int_trigger_clock.looked_at,
                        int_trigger_clock.next_slot_at,
                        null
                    ),
                    expiries.expires_at
                )
            )
        ) as next_due_at
    from int_trigger_clock
    left join expiries
        on int_trigger_clock.upstream_id = expiries.upstream_id
    group by int_trigger_clock.trigger_type

)

select * from final

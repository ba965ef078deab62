-- one row per unpaused trigger and slot that is open at the newest evaluation: still waiting, or opened by it
with

int_trigger_due_slots as (

    select * from {{ ref('int_trigger_due_slots') }}

),

listed as (

    select
        int_trigger_due_slots.*,
        inline(
            concat(
                transform(
                    int_trigger_due_slots.opened,
                    opened -> named_struct(
                        'slot', opened,
                        'is_new', true,
                        'missing', cast(null as array<string>),
                        'is_oldest_satisfied', false
                    )
                ),
                transform(
                    coalesce(
                        int_trigger_due_slots.waiting, cast(array() as array<timestamp>)
                    ),
                    (waiting, place) -> named_struct(
                        'slot', waiting,
                        'is_new', false,
                        'missing', get(int_trigger_due_slots.missing, place),
                        'is_oldest_satisfied', coalesce(
                            place + 1 = array_position(
                                transform(
                                    int_trigger_due_slots.missing,
                                    missing -> cardinality(missing) = 0
                                ),
                                true
                            ),
                            false
                        )
                    )
                )
            )
        ) as (slot, is_slot_new, missing_before, is_oldest_satisfied)
    from int_trigger_due_slots

),

with_expiry as (

    select
        listed.*,
        if(
            listed.may_expire,
            timestamp_seconds(
                unix_seconds(
                    -- The calendar is consulted only where it matters: an hour may occur twice in it.
                    if(
                        listed.expiry_months = 0 and listed.expiry_days = 0,
                        listed.slot,
                        to_utc_timestamp(
                            from_utc_timestamp(listed.slot, listed.time_zone)
                            + make_interval(
                                0, listed.expiry_months, 0, listed.expiry_days
                            ),
                            listed.time_zone
                        )
                    )
                ) + listed.expiry_seconds
            ),
            null
        ) as expires_at
    from listed

),

final as (

    select
        with_expiry.upstream_id,
        with_expiry.trigger_type,
        with_expiry.slot,
        with_expiry.is_slot_new,
        with_expiry.missing_before,
        with_expiry.expires_at,
        coalesce(with_expiry.expires_at <= with_expiry.looked_at, false) as is_overdue,
        coalesce(cardinality(with_expiry.missing_before) = 0, false) as was_satisfied,
        with_expiry.may_release,
        with_expiry.may_release and with_expiry.is_oldest_satisfied as is_ready
    from with_expiry

)

select * from final

-- one row per trigger that the newest evaluation reads: which of its slots open, by their numbers
-- Over 120 lines: the arithmetic of slots needs one window, or the optimizer repeats it at each use.
with

int_trigger_cursors as (

    select * from {{ ref('int_trigger_cursors') }}
    where is_idle is not true

),

-- Dates estimate how many steps fit; slots decide between neighbours, as clocks are put forward and back.
with_numbers as (

    select
        int_trigger_cursors.*,
        transform(
            array(
                int_trigger_cursors.looked_at,
                int_trigger_cursors.opened_through
            ),
            moment -> get(
                filter(
                    transform(
                        array(1, 0, -1),
                        near -> near + case
                            when int_trigger_cursors.step_seconds is not null
                                then (
                                    unix_seconds(moment)
                                    - unix_seconds(int_trigger_cursors.start_at)
                                ) div int_trigger_cursors.step_seconds
                            when int_trigger_cursors.step_days > 0
                                then datediff(
                                        from_utc_timestamp(
                                            moment, int_trigger_cursors.time_zone
                                        ),
                                        int_trigger_cursors.start_wall
                                    ) div int_trigger_cursors.step_days
                            when int_trigger_cursors.step_months > 0
                                then floor(
                                        months_between(
                                            from_utc_timestamp(
                                                moment, int_trigger_cursors.time_zone
                                            ),
                                            int_trigger_cursors.start_wall
                                        )
                                    ) div int_trigger_cursors.step_months
                        end
                    ),
                    number -> number >= 0
                    and {{ trigger_slot('int_trigger_cursors', 'number') }} <= moment
                ),
                0
            )
        ) as numbers
    from int_trigger_cursors

),

-- A window over one row keeps the optimizer from writing the calculation out at each of its uses.
computed_once as (

    select
        with_numbers.*,
        max(with_numbers.numbers) over (partition by with_numbers.upstream_id) as known
    from with_numbers

),

counted as (

    select
        computed_once.*,
        coalesce(get(computed_once.known, 0), -1) as newest_number,
        coalesce(get(computed_once.known, 1), -1) as opened_number,
        greatest(
            coalesce(get(computed_once.known, 0), -1)
            - coalesce(get(computed_once.known, 1), -1),
            0
        ) as due_count,
        computed_once.missed_slots = 'ALL' and computed_once.trigger_type = 'PARTITION'
            as opens_all
    from computed_once

),

-- What came due together with a later slot was missed. With missed_slots ALL at most 1,000 open
-- that wait at the same time; the others follow as these are done.
opening as (

    select
        counted.*,
        case
            when counted.due_count = 0 then null
            when counted.opens_all then counted.opened_number + 1
            when counted.missed_slots = 'NONE' and counted.due_count > 1 then null
            else counted.newest_number
        end as first_number,
        if(
            counted.opens_all,
            least(
                counted.newest_number,
                counted.opened_number
                + greatest(1000 - coalesce(cardinality(counted.waiting), 0), 0)
            ),
            counted.newest_number
        ) as last_number
    from counted

),

final as (

    select
        opening.upstream_id,
        opening.trigger_type,
        opening.looked_at,
        opening.look_tick,
        opening.is_new,
        opening.pace_key,
        opening.is_repaced,
        opening.noted_due_at,
        opening.trigger_type = 'SNAPSHOT'
        and (opening.is_new or opening.first_number is not null) as takes_changes,
        opening.looked_through,
        opening.may_release,
        opening.time_zone,
        opening.expiry_months,
        opening.expiry_days,
        opening.expiry_seconds,
        opening.may_expire,
        opening.waiting,
        opening.missing,
        if(
            opening.first_number <= opening.last_number,
            transform(
                sequence(opening.first_number, opening.last_number),
                number -> {{ trigger_slot('opening', 'number') }}
            ),
            cast(array() as array<timestamp>)
        ) as opened,
        if(
            opening.due_count > 0 and opening.last_number >= 0,
            {{ trigger_slot('opening', 'opening.last_number') }},
            opening.opened_through
        ) as opened_through,
        case
            when opening.opens_all then 0
            when opening.first_number is null then opening.due_count
            else opening.due_count - 1
        end as skipped_count,
        {{ trigger_slot('opening', '(opening.newest_number + 1)') }} as next_slot_at
    from opening

)

select * from final

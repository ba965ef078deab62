-- one row per open slot of a partition trigger: what the newest look makes of it
with

int_trigger_slots as (

    select * from {{ ref('int_trigger_slots') }}
    where trigger_type = 'PARTITION'

),

int_trigger_matches as (

    select * from {{ ref('int_trigger_matches') }}

),

by_slot as (

    select
        int_trigger_matches.upstream_id,
        int_trigger_matches.slot,
        sort_array(
            collect_list(
                if(
                    cardinality(int_trigger_matches.events) = 0,
                    int_trigger_matches.waits_for,
                    null
                )
            )
        ) as missing,
        array_distinct(flatten(collect_list(int_trigger_matches.events))) as events
    from int_trigger_matches
    group by int_trigger_matches.upstream_id, int_trigger_matches.slot

),

with_missing as (

    select
        int_trigger_slots.*,
        by_slot.events,
        coalesce(
            by_slot.missing,
            int_trigger_slots.missing_before,
            cast(array() as array<string>)
        ) as missing,
        by_slot.missing is not null
        and not by_slot.missing <=> int_trigger_slots.missing_before as has_changed,
        cardinality(coalesce(by_slot.missing, int_trigger_slots.missing_before)) = 0
            as is_satisfied
    from int_trigger_slots
    left join by_slot
        on int_trigger_slots.upstream_id = by_slot.upstream_id
            and int_trigger_slots.slot = by_slot.slot

),

numbered as (

    select
        with_missing.*,
        row_number() over (
            partition by with_missing.upstream_id, with_missing.is_satisfied
            order by with_missing.slot
        ) as oldest_first
    from with_missing

),

final as (

    select
        numbered.upstream_id,
        numbered.slot,
        numbered.missing,
        numbered.events,
        numbered.expires_at,
        numbered.has_changed,
        -- One slot at a time, the oldest first: each slot is one run.
        numbered.is_satisfied
        and numbered.may_release
        and numbered.oldest_first = 1 as is_released,
        not numbered.is_satisfied and numbered.is_overdue as is_expired
    from numbered

)

select * from final

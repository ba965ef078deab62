-- one row per open slot of a partition trigger: its result at the newest evaluation
with

int_trigger_matches as (

    select * from {{ ref('int_trigger_matches') }}

),

by_slot as (

    select
        int_trigger_matches.upstream_id,
        int_trigger_matches.slot,
        int_trigger_matches.about,
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
    group by
        int_trigger_matches.upstream_id,
        int_trigger_matches.slot,
        int_trigger_matches.about

),

-- What was not read again is as of the last evaluation.
with_missing as (

    select
        by_slot.upstream_id,
        by_slot.slot,
        by_slot.events,
        by_slot.about.expires_at,
        by_slot.about.is_overdue,
        by_slot.about.may_release,
        if(
            by_slot.about.is_decided, by_slot.missing, by_slot.about.missing_before
        ) as missing,
        by_slot.about.is_decided
        and not by_slot.missing <=> by_slot.about.missing_before as has_changed,
        cardinality(
            if(by_slot.about.is_decided, by_slot.missing, by_slot.about.missing_before)
        ) = 0 as is_satisfied
    from by_slot

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

-- one row per unpaused trigger: how it is evaluated, if at all, and where the last evaluation ended
-- Over 120 lines: whether a trigger is idle and what is parsed of its cursor are one decision.
with

int_trigger_schedules as (

    select * from {{ ref('int_trigger_schedules') }}

),

int_trigger_pending_events as (

    select * from {{ ref('int_trigger_pending_events') }}

),

int_upstreams_now as (

    select * from {{ ref('int_upstreams_now') }}
    where upstream_id like 'trigger:%'

),

int_dependency_progress as (

    select * from {{ ref('int_dependency_progress') }}

),

ledger_trigger_looks as (

    select * from {{ ref('ledger_trigger_looks') }} as ledger_trigger_looks
    where {{ is_in_tail('ledger_trigger_looks') }}

),

newest_evaluation as (

    select
        max(ledger_trigger_looks.tick_number) as look_tick,
        max_by(ledger_trigger_looks.looked_at, ledger_trigger_looks.tick_number)
            as looked_at
    from ledger_trigger_looks

),

with_cursor as (

    select
        int_trigger_schedules.*,
        (select newest_evaluation.looked_at from newest_evaluation) as looked_at,
        (select newest_evaluation.look_tick from newest_evaluation) as look_tick,
        int_upstreams_now.position,
        from_json(
            int_upstreams_now.position,
            'next_due_at timestamp, pace_key bigint, is_ready boolean'
        ) as note,
        int_trigger_pending_events.upstream_id is not null as has_pending_events,
        -- One slot at a time: the next one is passed on when the run of the last one has succeeded.
        coalesce(
            int_upstreams_now.latest_event_tick
            <= int_dependency_progress.consumed_through_tick
            and not int_dependency_progress.is_open
            and not int_dependency_progress.holds_job,
            int_upstreams_now.latest_event_tick is null
        ) as may_release
    from int_trigger_schedules
    left join int_upstreams_now
        on int_trigger_schedules.upstream_id = int_upstreams_now.upstream_id
    left join int_trigger_pending_events
        on int_trigger_schedules.upstream_id = int_trigger_pending_events.upstream_id
    left join int_dependency_progress
        on int_trigger_schedules.upstream_id = int_dependency_progress.upstream_id
            and int_trigger_schedules.job_id = int_dependency_progress.job_id

),

-- Most evaluations have no result for most triggers: what the last one recorded suffices to skip them.
with_idleness as (

    select
        with_cursor.*,
        coalesce(
            with_cursor.note.next_due_at > with_cursor.looked_at
            and with_cursor.note.pace_key = with_cursor.pace_key
            and not with_cursor.has_pending_events
            and not (
                with_cursor.may_release
                and coalesce(with_cursor.note.is_ready, false)
            ),
            false
        ) as is_idle
    from with_cursor

),

with_place as (

    select
        with_idleness.*,
        if(
            with_idleness.is_idle,
            null,
            from_json(
                with_idleness.position,
                concat_ws(
                    ', ',
                    'opened_through timestamp',
                    'waiting array<timestamp>',
                    'missing array<array<string>>',
                    'looked_through bigint'
                )
            )
        ) as place
    from with_idleness

),

final as (

    select
        with_place.upstream_id,
        with_place.trigger_type,
        with_place.job_id,
        with_place.time_zone,
        with_place.start_at,
        with_place.start_wall,
        with_place.step_months,
        with_place.step_days,
        with_place.step_seconds,
        with_place.expiry_months,
        with_place.expiry_days,
        with_place.expiry_seconds,
        with_place.may_expire,
        with_place.missed_slots,
        with_place.looked_at,
        with_place.look_tick,
        with_place.note is null as is_new,
        with_place.is_idle,
        with_place.pace_key,
        not with_place.pace_key <=> with_place.note.pace_key as is_repaced,
        with_place.note.next_due_at as noted_due_at,
        with_place.place.opened_through,
        with_place.place.waiting,
        with_place.place.missing,
        with_place.place.looked_through,
        with_place.may_release
    from with_place

)

select * from final

-- one row per unpaused trigger: how it is to be asked, and where the last look at it ended
with

stg_event_triggers as (

    select * from {{ ref('stg_event_triggers') }}
    where not is_paused

),

int_upstreams_now as (

    select * from {{ ref('int_upstreams_now') }}

),

int_dependency_progress as (

    select * from {{ ref('int_dependency_progress') }}

),

ledger_trigger_looks as (

    select * from {{ ref('ledger_trigger_looks') }} as ledger_trigger_looks
    where {{ is_in_tail('ledger_trigger_looks') }}

),

newest_look as (

    select
        max(ledger_trigger_looks.tick_number) as look_tick,
        max_by(ledger_trigger_looks.looked_at, ledger_trigger_looks.tick_number)
            as looked_at
    from ledger_trigger_looks

),

triggers as (

    select
        stg_event_triggers.upstream_id,
        stg_event_triggers.time_zone,
        stg_event_triggers.start_at,
        stg_event_triggers.start_wall,
        stg_event_triggers.step_months,
        stg_event_triggers.step_days,
        stg_event_triggers.step_seconds,
        min(stg_event_triggers.trigger_type) as trigger_type,
        min(stg_event_triggers.job_id) as job_id,
        min(stg_event_triggers.missed_slots) as missed_slots,
        min(stg_event_triggers.expiry_months) as expiry_months,
        min(stg_event_triggers.expiry_days) as expiry_days,
        min(stg_event_triggers.expiry_seconds) as expiry_seconds,
        min(stg_event_triggers.may_expire) as may_expire
    from stg_event_triggers
    group by
        stg_event_triggers.upstream_id,
        stg_event_triggers.time_zone,
        stg_event_triggers.start_at,
        stg_event_triggers.start_wall,
        stg_event_triggers.step_months,
        stg_event_triggers.step_days,
        stg_event_triggers.step_seconds

),

with_position as (

    select
        triggers.*,
        (select newest_look.looked_at from newest_look) as looked_at,
        (select newest_look.look_tick from newest_look) as look_tick,
        from_json(
            int_upstreams_now.position,
            concat_ws(
                ', ',
                'opened_through timestamp',
                'waiting array<timestamp>',
                'missing array<array<string>>',
                'looked_through bigint'
            )
        ) as place,
        -- One slot at a time: the next one is handed out when the run of the last one has succeeded.
        coalesce(
            int_upstreams_now.latest_event_tick
            <= int_dependency_progress.consumed_through_tick
            and not int_dependency_progress.is_open
            and not int_dependency_progress.holds_job,
            int_upstreams_now.latest_event_tick is null
        ) as may_release
    from triggers
    left join int_upstreams_now
        on triggers.upstream_id = int_upstreams_now.upstream_id
    left join int_dependency_progress
        on triggers.upstream_id = int_dependency_progress.upstream_id
            and triggers.job_id = int_dependency_progress.job_id

),

final as (

    select
        with_position.upstream_id,
        with_position.trigger_type,
        with_position.job_id,
        with_position.time_zone,
        with_position.start_at,
        with_position.start_wall,
        with_position.step_months,
        with_position.step_days,
        with_position.step_seconds,
        with_position.expiry_months,
        with_position.expiry_days,
        with_position.expiry_seconds,
        with_position.may_expire,
        with_position.missed_slots,
        with_position.looked_at,
        with_position.look_tick,
        with_position.place is null as is_new,
        with_position.place.opened_through,
        with_position.place.waiting,
        with_position.place.missing,
        with_position.place.looked_through,
        with_position.may_release
    from with_position

)

select * from final

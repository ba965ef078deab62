{{ config(materialized='table', file_format='delta') }}
-- one row per unpaused trigger that can be evaluated: how its slots lie
with

int_trigger_faults as (

    select * from {{ ref('int_trigger_faults') }}

),

stg_event_triggers as (

    select * from {{ ref('stg_event_triggers') }}
    where not is_paused

),

paced as (

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
    left anti join int_trigger_faults
        on stg_event_triggers.upstream_id = int_trigger_faults.upstream_id
    group by
        stg_event_triggers.upstream_id,
        stg_event_triggers.time_zone,
        stg_event_triggers.start_at,
        stg_event_triggers.start_wall,
        stg_event_triggers.step_months,
        stg_event_triggers.step_days,
        stg_event_triggers.step_seconds

),

final as (

    select
        paced.upstream_id,
        paced.trigger_type,
        paced.job_id,
        paced.time_zone,
        paced.start_at,
        paced.start_wall,
        paced.step_months,
        paced.step_days,
        paced.step_seconds,
        paced.missed_slots,
        paced.expiry_months,
        paced.expiry_days,
        paced.expiry_seconds,
        paced.may_expire,
        xxhash64(
            paced.start_at,
            paced.start_wall,
            paced.step_months,
            paced.step_days,
            paced.step_seconds,
            paced.time_zone,
            paced.missed_slots,
            paced.expiry_months,
            paced.expiry_days,
            paced.expiry_seconds,
            paced.may_expire
        ) as pace_key
    from paced

)

select * from final

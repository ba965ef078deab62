{{ config(materialized='table', file_format='delta') }}
-- one row per dependency of a job: a row of the controls, or a trigger
with

stg_controls as (

    select * from {{ ref('stg_controls') }}

),

stg_event_triggers as (

    select * from {{ ref('stg_event_triggers') }}

),

-- The rows of one trigger differ in their tables alone.
triggers as (

    select
        stg_event_triggers.upstream_id,
        stg_event_triggers.trigger_id,
        min(stg_event_triggers.job_id) as job_id,
        min(stg_event_triggers.job_name) as job_name,
        min(stg_event_triggers.trigger_state) as job_state,
        min(stg_event_triggers.dependency_flag) as dependency_flag,
        bool_or(stg_event_triggers.is_paused) as is_paused,
        bool_and(stg_event_triggers.is_required) as is_required
    from stg_event_triggers
    group by stg_event_triggers.upstream_id, stg_event_triggers.trigger_id

),

final as (

    select
        stg_controls.control_id,
        stg_controls.upstream_id,
        stg_controls.sensor_source,
        stg_controls.sensor_id,
        stg_controls.sensor_read_type,
        stg_controls.asset_description,
        stg_controls.upstream_key,
        stg_controls.preprocess_query,
        stg_controls.job_id,
        stg_controls.job_name,
        stg_controls.job_state,
        stg_controls.dependency_flag,
        stg_controls.is_paused,
        stg_controls.is_required
    from stg_controls

    union all

    select
        concat(triggers.upstream_id, '_', cast(triggers.job_id as string))
            as control_id,
        triggers.upstream_id,
        'event_trigger' as sensor_source,
        triggers.trigger_id as sensor_id,
        'batch' as sensor_read_type,
        cast(null as string) as asset_description,
        cast(null as string) as upstream_key,
        cast(null as string) as preprocess_query,
        triggers.job_id,
        triggers.job_name,
        triggers.job_state,
        triggers.dependency_flag,
        triggers.is_paused,
        triggers.is_required
    from triggers

)

select * from final

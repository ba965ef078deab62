-- one row per control row whose text differs from what the ledger of controls last recorded
with

stg_controls as (

    select * from {{ ref('stg_controls') }}

),

ledger_controls as (

    select * from {{ ref('ledger_controls') }}

),

numbered as (

    select
        ledger_controls.*,
        row_number() over (
            partition by ledger_controls.control_id
            order by ledger_controls.tick_number desc
        ) as newest_first
    from ledger_controls

),

recorded as (

    select * from numbered
    where newest_first = 1
        and change != 'removed'

),

added_or_changed as (

    select
        stg_controls.control_id,
        if(recorded.control_id is null, 'added', 'changed') as change,
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
        stg_controls.dependency_flag
    from stg_controls
    left join recorded
        on stg_controls.control_id = recorded.control_id
    where recorded.control_id is null
        or stg_controls.upstream_id != recorded.upstream_id
        or not stg_controls.asset_description <=> recorded.asset_description
        or not stg_controls.job_name <=> recorded.job_name
        or not stg_controls.job_state <=> recorded.job_state
        or not stg_controls.dependency_flag <=> recorded.dependency_flag

),

removed as (

    select
        recorded.control_id,
        'removed' as change,
        recorded.upstream_id,
        recorded.sensor_source,
        recorded.sensor_id,
        recorded.sensor_read_type,
        recorded.asset_description,
        recorded.upstream_key,
        recorded.preprocess_query,
        recorded.job_id,
        recorded.job_name,
        recorded.job_state,
        recorded.dependency_flag
    from recorded
    left anti join stg_controls
        on recorded.control_id = stg_controls.control_id

),

final as (

    select * from added_or_changed

    union all

    select * from removed

)

select * from final

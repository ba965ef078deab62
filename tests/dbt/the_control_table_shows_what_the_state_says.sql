-- one row per row in which the kept control table differs from a rebuilt one
{{ config(group='publish') }}
with

heartbeat_control as (

    select * from {{ ref('heartbeat_control') }}

),

int_control_rows as (

    select
        int_control_rows.sensor_source,
        int_control_rows.sensor_id,
        int_control_rows.sensor_read_type,
        int_control_rows.asset_description,
        int_control_rows.upstream_key,
        int_control_rows.preprocess_query,
        int_control_rows.latest_event_fetched_timestamp,
        int_control_rows.trigger_job_id,
        int_control_rows.trigger_job_name,
        int_control_rows.status,
        int_control_rows.status_change_timestamp,
        int_control_rows.job_start_timestamp,
        int_control_rows.job_end_timestamp,
        int_control_rows.job_state,
        int_control_rows.dependency_flag
    from {{ ref('int_control_rows') }} as int_control_rows

),

too_much as (

    select * from heartbeat_control

    except

    select * from int_control_rows

),

missing as (

    select * from int_control_rows

    except

    select * from heartbeat_control

),

final as (

    select * from too_much

    union all

    select * from missing

)

select * from final

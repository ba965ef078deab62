{{ config(materialized='table') }}
-- one row per control row, with the fifteen columns of the control table
with

int_control_rows as (

    select * from {{ ref('int_control_rows') }}

),

final as (

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
    from int_control_rows

)

select * from final

{{
    config(
        materialized='incremental',
        incremental_strategy='merge',
        unique_key=['sensor_source', 'sensor_id', 'trigger_job_id'],
        post_hook="{{ delete_rows_not_in(ref('int_control_rows'), ['sensor_source', 'sensor_id', 'trigger_job_id']) }}"
    )
}}
-- one row per control row, with the fifteen columns of the control table
with

int_control_rows as (

    select * from {{ ref('int_control_rows') }}

),
{% if is_incremental() %}

published as (

    select * from {{ this }}

),
{% endif %}

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
    {% if is_incremental() %}
    left join published
        on int_control_rows.sensor_source = published.sensor_source
            and int_control_rows.sensor_id = published.sensor_id
            and int_control_rows.trigger_job_id = published.trigger_job_id
    where published.sensor_source is null
        or not int_control_rows.sensor_read_type <=> published.sensor_read_type
        or not int_control_rows.asset_description <=> published.asset_description
        or not int_control_rows.upstream_key <=> published.upstream_key
        or not int_control_rows.preprocess_query <=> published.preprocess_query
        or not int_control_rows.latest_event_fetched_timestamp
        <=> published.latest_event_fetched_timestamp
        or not int_control_rows.trigger_job_name <=> published.trigger_job_name
        or not int_control_rows.status <=> published.status
        or not int_control_rows.status_change_timestamp
        <=> published.status_change_timestamp
        or not int_control_rows.job_start_timestamp <=> published.job_start_timestamp
        or not int_control_rows.job_end_timestamp <=> published.job_end_timestamp
        or not int_control_rows.job_state <=> published.job_state
        or not int_control_rows.dependency_flag <=> published.dependency_flag
    {% endif %}

)

select * from final

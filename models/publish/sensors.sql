{{
    config(
        materialized='incremental',
        incremental_strategy='merge',
        unique_key='sensor_id',
        post_hook="{{ delete_rows_not_in(ref('int_sensor_rows'), ['sensor_id']) }}"
    )
}}
-- one row per upstream and job
with

int_sensor_rows as (

    select * from {{ ref('int_sensor_rows') }}

),
{% if is_incremental() %}

published as (

    select * from {{ this }}

),
{% endif %}

final as (

    select
        int_sensor_rows.sensor_id,
        int_sensor_rows.assets,
        int_sensor_rows.status,
        int_sensor_rows.status_change_timestamp,
        int_sensor_rows.checkpoint_location,
        int_sensor_rows.upstream_key,
        int_sensor_rows.upstream_value
    from int_sensor_rows
    {% if is_incremental() %}
    left join published
        on int_sensor_rows.sensor_id = published.sensor_id
    where published.sensor_id is null
        or not int_sensor_rows.assets <=> published.assets
        or not int_sensor_rows.status <=> published.status
        or not int_sensor_rows.status_change_timestamp
        <=> published.status_change_timestamp
        or not int_sensor_rows.checkpoint_location <=> published.checkpoint_location
        or not int_sensor_rows.upstream_key <=> published.upstream_key
        or not int_sensor_rows.upstream_value <=> published.upstream_value
    {% endif %}

)

select * from final

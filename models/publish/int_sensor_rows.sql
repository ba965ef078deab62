-- one row per upstream and job, as the sensors table shows it
with

int_control_rows as (

    select * from {{ ref('int_control_rows') }}

),

sensor_assets as (

    select * from {{ ref('sensor_assets') }}

),

imported_sensors as (

    select * from {{ ref('imported_sensors') }}

),

assets_by_sensor as (

    select
        trim(sensor_assets.sensor_id) as sensor_id,
        sort_array(collect_set(trim(sensor_assets.asset))) as assets
    from sensor_assets
    group by trim(sensor_assets.sensor_id)

),

with_status as (

    select
        int_control_rows.*,
        struct(int_control_rows.*) as control_row,
        case
            when int_control_rows.status = 'COMPLETED'
                and not coalesce(int_control_rows.is_given_up, false)
                then 'PROCESSED_NEW_DATA'
            when int_control_rows.status is not null then 'ACQUIRED_NEW_DATA'
        end as sensor_status
    from int_control_rows

),

final as (

    select
        -- Followers of an earlier sensor go on with the id that they have.
        coalesce(
            nullif(trim(imported_sensors.sensor_id), ''),
            with_status.control_id
        ) as sensor_id,
        coalesce(assets_by_sensor.assets, cast(array() as array<string>)) as assets,
        with_status.sensor_status as status,
        date_format(
            if(
                with_status.sensor_status = 'PROCESSED_NEW_DATA',
                with_status.run_recorded_at,
                with_status.acquired_at
            ),
            "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
        ) as status_change_timestamp,
        cast(null as string) as checkpoint_location,
        with_status.upstream_key,
        with_status.upstream_value,
        with_status.control_row
    from with_status
    left join assets_by_sensor
        on with_status.control_id = assets_by_sensor.sensor_id
    left join imported_sensors
        on with_status.control_id = trim(imported_sensors.control_id)

)

select * from final

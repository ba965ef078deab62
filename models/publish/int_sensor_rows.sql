-- one row per upstream and job, as the sensors table shows it
with

int_control_rows as (

    select * from {{ ref('int_control_rows') }}

),

with_status as (

    select
        int_control_rows.*,
        case
            when int_control_rows.status = 'COMPLETED' then 'PROCESSED_NEW_DATA'
            when int_control_rows.status is not null then 'ACQUIRED_NEW_DATA'
        end as sensor_status
    from int_control_rows

),

final as (

    select
        with_status.control_id as sensor_id,
        cast(array() as array<string>) as assets,
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
        with_status.upstream_value
    from with_status

)

select * from final

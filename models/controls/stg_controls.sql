-- one row per control row of the CSV, cleaned: the only place where its text is interpreted
with

controls as (

    select * from {{ ref('heartbeat_controls') }}
    where sensor_source is not null

),

cleaned as (

    select
        lower(trim(controls.sensor_source)) as sensor_source,
        trim(controls.sensor_id) as sensor_id,
        lower(trim(controls.sensor_read_type)) as sensor_read_type,
        nullif(trim(controls.asset_description), '') as asset_description,
        nullif(trim(controls.upstream_key), '') as upstream_key,
        nullif(trim(controls.preprocess_query), '') as preprocess_query,
        cast(trim(controls.trigger_job_id) as bigint) as job_id,
        trim(controls.trigger_job_name) as job_name,
        upper(trim(controls.job_state)) as job_state,
        coalesce(nullif(upper(trim(controls.dependency_flag)), ''), 'TRUE')
            as dependency_flag
    from controls

),

final as (

    select
        concat(
            regexp_replace(cleaned.sensor_id, '[^A-Za-z0-9]', '_'),
            '_',
            cast(cleaned.job_id as string)
        ) as control_id,
        concat_ws(
            ':',
            cleaned.sensor_source,
            cleaned.sensor_id,
            left(
                sha2(
                    concat_ws(
                        '|',
                        cleaned.sensor_read_type,
                        coalesce(cleaned.upstream_key, ''),
                        coalesce(cleaned.preprocess_query, '')
                    ),
                    256
                ),
                8
            )
        ) as upstream_id,
        cleaned.sensor_source,
        cleaned.sensor_id,
        cleaned.sensor_read_type,
        cleaned.asset_description,
        cleaned.upstream_key,
        cleaned.preprocess_query,
        cleaned.job_id,
        cleaned.job_name,
        cleaned.job_state,
        cleaned.dependency_flag,
        coalesce(cleaned.job_state = 'PAUSED', false) as is_paused,
        cleaned.dependency_flag != 'FALSE' as is_required
    from cleaned

)

select * from final

-- one row per trigger and table of the CSV, cleaned: the only place where its text is interpreted
with

triggers as (

    select * from {{ ref('event_triggers') }}
    where trigger_id is not null

),

cleaned as (

    select
        trim(triggers.trigger_id) as trigger_id,
        upper(trim(triggers.trigger_type)) as trigger_type,
        try_cast(trim(triggers.job_id) as bigint) as job_id,
        trim(triggers.job_name) as job_name,
        trim(triggers.`table`) as `table`,
        nullif(trim(triggers.partition), '') as trigger_partition,
        nullif(trim(triggers.tags), '') as trigger_tags,
        regexp_replace(upper(trim(triggers.start_timestamp)), ' +Z$', 'Z')
            as start_text,
        if(
            try_cast(trim(triggers.frequency) as bigint) between 1 and 100000,
            try_cast(trim(triggers.frequency) as bigint),
            null
        ) as frequency,
        upper(trim(triggers.frequency_unit)) as frequency_unit,
        coalesce(nullif(trim(triggers.time_zone), ''), 'UTC') as time_zone,
        upper(nullif(trim(triggers.expires_after), '')) as expires_text,
        coalesce(nullif(upper(trim(triggers.missed_slots)), ''), 'LATEST')
            as missed_slots,
        coalesce(nullif(upper(trim(triggers.dependency_flag)), ''), 'TRUE')
            as dependency_flag,
        coalesce(nullif(upper(trim(triggers.trigger_state)), ''), 'UNPAUSED')
            as trigger_state
    from triggers

),

with_times as (

    select
        cleaned.*,
        cleaned.start_text rlike '[T ].*(Z|[+-][0-9]{2}:[0-9]{2})$' as start_has_zone,
        date_trunc('SECOND', try_cast(cleaned.start_text as timestamp))
            as start_as_read,
        -- A zone that the engine does not recognize has no local time, and fails nothing.
        if({{ is_time_zone('cleaned.time_zone') }}, cleaned.time_zone, null)
            as known_time_zone,
        {{ units_of_time('cleaned.frequency', 'cleaned.frequency_unit') }} as step,
        {{
            units_of_time(
                "try_cast(regexp_extract(cleaned.expires_text, '^[0-9]{1,6}(?![0-9])', 0) as bigint)",
                "regexp_extract(cleaned.expires_text, '[A-Z]+$', 0)"
            )
        }} as expiry
    from cleaned

),

final as (

    select
        concat('trigger:', with_times.trigger_id) as upstream_id,
        with_times.trigger_id,
        with_times.trigger_type,
        with_times.job_id,
        with_times.job_name,
        with_times.`table`,
        with_times.trigger_partition,
        with_times.trigger_tags,
        -- Without a zone of its own it is what a clock on the wall of the time zone shows.
        if(
            with_times.start_has_zone,
            with_times.start_as_read,
            to_utc_timestamp(with_times.start_as_read, with_times.known_time_zone)
        ) as start_at,
        if(
            with_times.start_has_zone,
            from_utc_timestamp(with_times.start_as_read, with_times.known_time_zone),
            with_times.start_as_read
        ) as start_wall,
        coalesce(with_times.step.months, 0) as step_months,
        coalesce(with_times.step.days, 0) as step_days,
        with_times.step.seconds as step_seconds,
        with_times.time_zone,
        coalesce(with_times.expiry.months, 0) as expiry_months,
        coalesce(with_times.expiry.days, 0) as expiry_days,
        coalesce(with_times.expiry.seconds, 0) as expiry_seconds,
        with_times.expires_text is not null as may_expire,
        with_times.missed_slots,
        with_times.dependency_flag,
        with_times.dependency_flag != 'FALSE' as is_required,
        with_times.trigger_state,
        with_times.trigger_state = 'PAUSED' as is_paused
    from with_times

)

select * from final

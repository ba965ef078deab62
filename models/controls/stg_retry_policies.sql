{{ config(materialized='table', file_format='delta') }}
-- one row per retry policy of the CSV, cleaned: the only place where its text is interpreted
with

retry_policies as (

    select * from {{ ref('retry_policies') }}
    where job_id is not null

),

cleaned as (

    select
        trim(retry_policies.job_id) as policy_job_id,
        try_cast(trim(retry_policies.max_attempts) as int) as max_attempts,
        try_cast(trim(retry_policies.backoff_minutes) as double) as backoff_minutes,
        coalesce(try_cast(trim(retry_policies.backoff_factor) as double), 2.0)
            as backoff_factor,
        coalesce(try_cast(trim(retry_policies.max_backoff_minutes) as double), 1440.0)
            as max_backoff_minutes,
        split(
            coalesce(
                nullif(upper(trim(retry_policies.retry_on)), ''),
                'FAILED TIMED_OUT SKIPPED'
            ),
            ' +'
        ) as retry_on
    from retry_policies

),

final as (

    select
        cleaned.policy_job_id,
        cleaned.max_attempts,
        cleaned.backoff_minutes,
        cleaned.backoff_factor,
        cleaned.max_backoff_minutes,
        cleaned.retry_on
    from cleaned
    -- An incomplete row is no policy: its job is held, and nothing is retried automatically.
    where cleaned.max_attempts is not null
        and cleaned.backoff_minutes is not null

)

select * from final

-- one row per job whose failed run is retried automatically
with

int_job_retries as (

    select * from {{ ref('int_job_retries') }}

),

final as (

    select
        int_job_retries.job_id,
        int_job_retries.intent_id,
        int_job_retries.attempt,
        int_job_retries.retry_at
    from int_job_retries
    where int_job_retries.retry_at is not null

)

select * from final

-- one row per job to start in this tick, with what the start consumes
with

job_eligibility as (

    select * from {{ ref('job_eligibility') }}

),

final as (

    select
        job_eligibility.job_id,
        job_eligibility.job_name,
        -- A requested retry is a new attempt of the same intent. Otherwise the intent is named
        -- by what it consumes: decided twice, it has the same name.
        if(
            job_eligibility.is_retry,
            job_eligibility.intent_id,
            left(
                sha2(
                    concat_ws(
                        '|',
                        cast(job_eligibility.job_id as string),
                        to_json(job_eligibility.takeable)
                    ),
                    256
                ),
                32
            )
        ) as intent_id,
        if(job_eligibility.is_retry, job_eligibility.attempt + 1, 1) as attempt,
        job_eligibility.takeable as consumed,
        job_eligibility.oldest_unconsumed_at,
        job_eligibility.starts_per_tick
    from job_eligibility
    where job_eligibility.is_eligible

)

select * from final

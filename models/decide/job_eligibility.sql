-- one row per job: eligible exactly when it has no blocker
with

int_job_verdicts as (

    select * from {{ ref('int_job_verdicts') }}

),

final as (

    select
        int_job_verdicts.job_id,
        int_job_verdicts.job_name,
        cardinality(int_job_verdicts.blockers) = 0 as is_eligible,
        int_job_verdicts.blockers,
        int_job_verdicts.news_count,
        int_job_verdicts.oldest_unconsumed_at,
        int_job_verdicts.intent_id,
        int_job_verdicts.attempt,
        int_job_verdicts.is_retry,
        int_job_verdicts.takeable
    from int_job_verdicts

)

select * from final

-- one row per job: eligible exactly when it has no blocker
with

int_job_decisions as (

    select * from {{ ref('int_job_decisions') }}

),

final as (

    select
        int_job_decisions.job_id,
        int_job_decisions.job_name,
        cardinality(int_job_decisions.blockers) = 0 as is_eligible,
        int_job_decisions.blockers,
        int_job_decisions.unconsumed_upstream_count as news_count,
        int_job_decisions.oldest_unconsumed_at,
        int_job_decisions.intent_id,
        int_job_decisions.attempt,
        int_job_decisions.is_retry,
        int_job_decisions.unconsumed_events as takeable,
        int_job_decisions.starts_per_tick
    from int_job_decisions

)

select * from final

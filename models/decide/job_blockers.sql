-- one row per job and reason why it may not run now
with

int_job_verdicts as (

    select * from {{ ref('int_job_verdicts') }}

),

final as (

    select
        int_job_verdicts.job_id,
        int_job_verdicts.job_name,
        inline(int_job_verdicts.blockers) as (blocker, reason, waits_for, since)
    from int_job_verdicts

)

select * from final

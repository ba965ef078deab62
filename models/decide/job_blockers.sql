-- one row per job and reason why it may not run now
with

int_job_decisions as (

    select * from {{ ref('int_job_decisions') }}

),

final as (

    select
        int_job_decisions.job_id,
        int_job_decisions.job_name,
        inline(int_job_decisions.blockers) as (blocker, reason, waits_for, since)
    from int_job_decisions

)

select * from final

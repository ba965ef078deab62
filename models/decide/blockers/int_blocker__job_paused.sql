-- one row per job: it is blocked while all of its rows are paused
select
    jobs.*,
    if(
        jobs.is_paused,
        named_struct(
            'blocker', 'job_paused',
            'reason', 'every row of the job is PAUSED',
            'waits_for', 'job_state UNPAUSED in the controls',
            'since', cast(null as timestamp)
        ),
        null
    ) as job_paused
from {{ ref('int_blocker__nothing_new') }} as jobs

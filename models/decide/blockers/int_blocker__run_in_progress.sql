-- one row per job: it is blocked while a run of it has not ended
select
    jobs.*,
    if(
        jobs.has_open_run,
        named_struct(
            'blocker', 'run_in_progress',
            'reason', coalesce(
                concat('its run ', jobs.run_id, ' goes on'),
                'its start is not acknowledged yet'
            ),
            'waits_for', 'the end of that run',
            'since', jobs.decided_at
        ),
        null
    ) as run_in_progress
from {{ ref('int_blocker__job_paused') }} as jobs

-- one row per job: a failed run blocks it until a run succeeds, if no retry is scheduled
select
    jobs.*,
    if(
        jobs.is_held and jobs.retry_at is null and not jobs.has_open_run,
        named_struct(
            'blocker', 'last_run_failed',
            'reason', jobs.hold_reason,
            'waits_for', concat(
                'one successful run, started by anyone, or `retry ', jobs.job_id, '`'
            ),
            'since', jobs.run_recorded_at
        ),
        null
    ) as last_run_failed
from {{ ref('int_blocker__run_in_progress') }} as jobs

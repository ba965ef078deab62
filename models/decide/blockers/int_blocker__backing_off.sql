-- one row per job: a failed run blocks it until the backoff of its retry policy has elapsed
select
    jobs.*,
    if(
        jobs.is_held and jobs.retry_at is not null and not jobs.has_open_run,
        named_struct(
            'blocker', 'backing_off',
            'reason', jobs.hold_reason,
            'waits_for', concat(
                date_format(
                    jobs.retry_at,
                    "yyyy-MM-dd'T'HH:mm:ss'Z and no other run of it'"
                ),
                ', or `retry ', jobs.job_id, '`'
            ),
            'since', jobs.run_recorded_at
        ),
        null
    ) as backing_off
from {{ ref('int_blocker__last_run_failed') }} as jobs

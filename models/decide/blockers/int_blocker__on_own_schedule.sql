-- one row per job: a pull consumer is always blocked, because its own schedule starts it
select
    jobs.*,
    if(
        jobs.is_on_own_schedule and not jobs.has_open_run and not jobs.is_held,
        named_struct(
            'blocker', 'on_own_schedule',
            'reason', 'the job is a pull consumer: it fetches its events itself',
            'waits_for', 'its own next run, whose first task is `sense`',
            'since', cast(null as timestamp)
        ),
        null
    ) as on_own_schedule
from {{ ref('int_blocker__backing_off') }} as jobs

-- one row per job: each paused hard dependency blocks it, unless the whole job is paused
select
    jobs.*,
    transform(
        filter(
            jobs.unready,
            dependency -> dependency.is_paused and not jobs.is_paused
        ),
        dependency -> named_struct(
            'blocker', 'required_row_paused',
            'reason', concat('its hard dependency ', dependency.sensor_id, ' is PAUSED'),
            'waits_for', concat(
                if(dependency.is_trigger, 'trigger_state', 'job_state'),
                ' UNPAUSED of ', dependency.sensor_id
            ),
            'since', coalesce(dependency.failing_since, dependency.decided_at)
        )
    ) as required_row_paused
from {{ ref('int_blocker__waiting_for_required_event') }} as jobs

-- one row per job: each unpaused hard dependency without an unconsumed event blocks it
select
    jobs.*,
    transform(
        filter(
            jobs.unready,
            dependency -> not dependency.is_paused and not jobs.is_paused
        ),
        dependency -> named_struct(
            'blocker', 'waiting_for_required_event',
            'reason', concat(
                'its hard dependency ', dependency.sensor_id,
                case
                    when dependency.failing_since is not null
                        then concat(' cannot be read: ', dependency.probe_reason)
                    when dependency.open_slot is not null
                        then concat(' ', dependency.open_slot.reason)
                    when dependency.is_trigger
                        then ' has no open slot'
                    when dependency.probe_outcome is null
                        then ' has not been looked at yet'
                    when dependency.latest_event_at is null
                        then ' has no data-change event yet'
                    else ' has nothing new since its last event was consumed'
                end
            ),
            'waits_for', case
                when dependency.open_slot is not null
                    then dependency.open_slot.waits_for
                when dependency.is_trigger
                    then concat('the next slot of ', dependency.sensor_id)
                else concat('a new data-change event of ', dependency.sensor_id)
            end,
            'since', coalesce(dependency.failing_since, dependency.decided_at)
        )
    ) as waiting_for_required_event
from {{ ref('int_job_retries') }} as jobs

-- one row per job: every reason why it may not run that a rule gives for the job alone
with

int_job_retries as (

    select * from {{ ref('int_job_retries') }}

),

-- Rules D2 and D4: every hard dependency needs an unconsumed event of its own.
with_dependency_blockers as (

    select
        int_job_retries.*,
        transform(
            if(int_job_retries.is_paused, array(), int_job_retries.unready),
            dependency -> named_struct(
                'blocker', if(
                    dependency.is_paused,
                    'required_row_paused',
                    'waiting_for_required_event'
                ),
                'reason', concat(
                    'its hard dependency ', dependency.sensor_id,
                    case
                        when dependency.is_paused
                            then ' is PAUSED'
                        when dependency.failing_since is not null
                            then concat(' cannot be read: ', dependency.look_reason)
                        when dependency.open_slot is not null
                            then concat(' ', dependency.open_slot.reason)
                        when dependency.is_trigger
                            then ' has no open slot'
                        when dependency.look_outcome is null
                            then ' has not been looked at yet'
                        when dependency.latest_event_at is null
                            then ' has no data-change event yet'
                        else ' has nothing new since its last event was taken'
                    end
                ),
                'waits_for', case
                    when dependency.is_paused
                        then concat(
                                if(dependency.is_trigger, 'trigger_state', 'job_state'),
                                ' UNPAUSED of ', dependency.sensor_id
                            )
                    when dependency.open_slot is not null
                        then dependency.open_slot.waits_for
                    when dependency.is_trigger
                        then concat('the next slot of ', dependency.sensor_id)
                    else concat('a new data-change event of ', dependency.sensor_id)
                end,
                'since', coalesce(dependency.failing_since, dependency.decided_at)
            )
        ) as dependency_blockers
    from int_job_retries

),

-- Rules D1, D3 and D4: a job without a hard dependency needs an event of any soft one.
with_news_blocker as (

    select
        with_dependency_blockers.*,
        case
            when with_dependency_blockers.is_paused
                then named_struct(
                        'blocker', 'job_paused',
                        'reason', 'every row of the job is PAUSED',
                        'waits_for', 'job_state UNPAUSED in the controls',
                        'since', cast(null as timestamp)
                    )
            when with_dependency_blockers.required_count = 0
                and with_dependency_blockers.news_count = 0
                then named_struct(
                        'blocker', 'nothing_new',
                        'reason', 'none of its soft dependencies has anything new',
                        'waits_for', 'a new data-change event of any of them',
                        'since', with_dependency_blockers.decided_at
                    )
        end as news_blocker
    from with_dependency_blockers

),

-- Rule D5: one run at a time, none after a failure until a run succeeds or its retry policy wants
-- it again; and none of a job that starts itself.
with_run_blocker as (

    select
        with_news_blocker.*,
        case
            when with_news_blocker.has_open_run
                then named_struct(
                        'blocker', 'run_in_progress',
                        'reason', coalesce(
                            concat('its run ', with_news_blocker.run_id, ' goes on'),
                            'its start is not acknowledged yet'
                        ),
                        'waits_for', 'the end of that run',
                        'since', with_news_blocker.decided_at
                    )
            when with_news_blocker.is_held
                then named_struct(
                        'blocker', if(
                            with_news_blocker.retry_at is null,
                            'last_run_failed',
                            'backing_off'
                        ),
                        'reason', with_news_blocker.hold_reason,
                        'waits_for', concat(
                            coalesce(
                                date_format(
                                    with_news_blocker.retry_at,
                                    "yyyy-MM-dd'T'HH:mm:ss'Z and no other run of it'"
                                ),
                                'one successful run, started by anyone'
                            ),
                            ', or `retry ', with_news_blocker.job_id, '`'
                        ),
                        'since', with_news_blocker.run_recorded_at
                    )
            when with_news_blocker.is_on_own_schedule
                then named_struct(
                        'blocker', 'on_own_schedule',
                        'reason', 'the job runs on its own schedule and asks by itself',
                        'waits_for', 'its own next run, whose first task is `sense`',
                        'since', cast(null as timestamp)
                    )
        end as run_blocker
    from with_news_blocker

),

final as (

    select
        with_run_blocker.job_id,
        with_run_blocker.job_name,
        with_run_blocker.intent_id,
        with_run_blocker.attempt,
        with_run_blocker.is_retry,
        with_run_blocker.decided_tick,
        with_run_blocker.takeable,
        with_run_blocker.news_count,
        with_run_blocker.oldest_unconsumed_tick,
        with_run_blocker.oldest_unconsumed_at,
        concat(
            array_compact(
                array(with_run_blocker.run_blocker, with_run_blocker.news_blocker)
            ),
            with_run_blocker.dependency_blockers
        ) as blockers,
        transform(blockers, each -> each.blocker) as blocker_names
    from with_run_blocker

)

select * from final

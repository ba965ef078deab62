-- one row per job of the controls: its state, and when its failed run is retried automatically
-- Over 120 lines: the instant of the retry and the reason of the hold follow from one row of the policies.
with

int_job_states as (

    select * from {{ ref('int_job_states') }}

),

stg_retry_policies as (

    select * from {{ ref('stg_retry_policies') }}

),

-- A handful of rows, in one value.
policies as (

    select
        map_from_entries(
            collect_list(
                named_struct(
                    'policy_job_id', stg_retry_policies.policy_job_id,
                    'policy', named_struct(
                        'max_attempts', stg_retry_policies.max_attempts,
                        'backoff_minutes', stg_retry_policies.backoff_minutes,
                        'backoff_factor', stg_retry_policies.backoff_factor,
                        'max_backoff_minutes', stg_retry_policies.max_backoff_minutes,
                        'retry_on', stg_retry_policies.retry_on
                    )
                )
            )
        ) as by_job
    from stg_retry_policies

),

with_policies as (

    select
        int_job_states.*,
        (select policies.by_job from policies) as policies
    from int_job_states

),

with_policy as (

    select
        with_policies.*,
        if(
            with_policies.is_held and not with_policies.is_on_own_schedule,
            coalesce(
                try_element_at(
                    with_policies.policies, cast(with_policies.job_id as string)
                ),
                try_element_at(with_policies.policies, '*')
            ),
            null
        ) as policy
    from with_policies

),

with_retry as (

    select
        with_policy.*,
        -- Every job has one attempt: a row that allows one excludes its job from the row `*`.
        if(
            with_policy.policy.max_attempts > 1, with_policy.policy.max_attempts, null
        ) as max_attempts,
        -- Counted from recorded instants alone, so that a replay gives the same instant.
        if(
            with_policy.attempt < with_policy.policy.max_attempts
            and array_contains(with_policy.policy.retry_on, with_policy.run_status),
            timestamp_micros(
                unix_micros(
                    least(with_policy.run_ended_at, with_policy.run_recorded_at)
                )
                + cast(
                    60000000 * least(
                        with_policy.policy.max_backoff_minutes,
                        with_policy.policy.backoff_minutes * power(
                            with_policy.policy.backoff_factor, with_policy.attempt - 1
                        )
                    ) as bigint
                )
            ),
            null
        ) as retry_at
    from with_policy

),

final as (

    select
        with_retry.job_id,
        with_retry.job_name,
        with_retry.is_paused,
        with_retry.is_on_own_schedule,
        with_retry.required_count,
        with_retry.unconsumed_upstream_count,
        with_retry.oldest_unconsumed_tick,
        with_retry.oldest_unconsumed_at,
        with_retry.unconsumed_events,
        with_retry.unready,
        with_retry.intent_id,
        with_retry.attempt,
        with_retry.run_id,
        with_retry.run_recorded_at,
        with_retry.decided_tick,
        with_retry.decided_at,
        with_retry.has_open_run,
        with_retry.is_held,
        with_retry.is_retry,
        with_retry.retry_at,
        if(
            with_retry.is_held,
            concat_ws(
                '; ',
                concat_ws(
                    ' ',
                    'its last run',
                    cast(with_retry.run_id as string),
                    'ended',
                    concat_ws(': ', with_retry.run_status, with_retry.run_message)
                ),
                case
                    when with_retry.retry_at is not null
                        then concat_ws(
                                ' ',
                                'attempt', with_retry.attempt + 1,
                                'of', with_retry.max_attempts, 'starts by itself'
                            )
                    when with_retry.attempt >= with_retry.max_attempts
                        then concat(
                                'that was attempt ', with_retry.attempt,
                                ', and its retry policy allows ', with_retry.max_attempts
                            )
                    when with_retry.max_attempts is not null
                        then 'its retry policy starts nothing again that ended so'
                end
            ),
            null
        ) as hold_reason
    from with_retry

)

select * from final

-- one row per job: every reason why it may not run now that a rule gives for the job alone
with

with_every_rule as (

    select * from {{ ref('int_blocker__on_own_schedule') }}

),

final as (

    select
        with_every_rule.job_id,
        with_every_rule.job_name,
        with_every_rule.intent_id,
        with_every_rule.attempt,
        with_every_rule.is_retry,
        with_every_rule.decided_tick,
        with_every_rule.unconsumed_events,
        with_every_rule.unconsumed_upstream_count,
        with_every_rule.oldest_unconsumed_tick,
        with_every_rule.oldest_unconsumed_at,
        concat(
            array_compact(
                array(
                    with_every_rule.run_in_progress,
                    with_every_rule.last_run_failed,
                    with_every_rule.backing_off,
                    with_every_rule.on_own_schedule,
                    with_every_rule.job_paused,
                    with_every_rule.nothing_new
                )
            ),
            with_every_rule.required_row_paused,
            with_every_rule.waiting_for_required_event
        ) as blockers
    from with_every_rule

)

select * from final

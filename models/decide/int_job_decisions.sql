-- one row per job: every reason why it may not run now, the limit of starts included
with

with_start_limit as (

    select * from {{ ref('int_blocker__over_start_limit') }}

),

final as (

    select
        with_start_limit.job_id,
        with_start_limit.job_name,
        with_start_limit.intent_id,
        with_start_limit.attempt,
        with_start_limit.is_retry,
        with_start_limit.unconsumed_events,
        with_start_limit.unconsumed_upstream_count,
        with_start_limit.oldest_unconsumed_at,
        with_start_limit.starts_per_tick,
        if(
            with_start_limit.over_start_limit is null,
            with_start_limit.blockers,
            array(with_start_limit.over_start_limit)
        ) as blockers
    from with_start_limit

)

select * from final

-- one row per job: every reason why it may not run now, the limit of starts included
with

int_rule_blockers as (

    select * from {{ ref('int_rule_blockers') }}

),

ledger_ticks as (

    select * from {{ ref('ledger_ticks') }} as ledger_ticks
    where {{ is_in_tail('ledger_ticks') }}

),

last_ended as (

    select
        coalesce(
            max(ledger_ticks.tick_number),
            {{ var('folded_through') | int }}
        ) as tick_number
    from ledger_ticks

),

with_last_ended as (

    select
        int_rule_blockers.*,
        (select last_ended.tick_number from last_ended) as last_ended_tick
    from int_rule_blockers

),

-- Rule D8: those that no rule blocks start in the order of their oldest event. What the tick that
-- goes on has started counts already, so that the answer is the same when it is asked again.
ordered as (

    select
        with_last_ended.*,
        count_if(with_last_ended.decided_tick > with_last_ended.last_ended_tick) over ()
        + row_number() over (
            order by
                cardinality(with_last_ended.blockers) > 0,
                with_last_ended.oldest_unconsumed_tick,
                with_last_ended.job_id
        ) as start_order
    from with_last_ended

),

final as (

    select
        ordered.job_id,
        ordered.job_name,
        ordered.intent_id,
        ordered.attempt,
        ordered.is_retry,
        ordered.takeable,
        ordered.news_count,
        ordered.oldest_unconsumed_at,
        if(
            cardinality(ordered.blockers) = 0
            and ordered.start_order > {{ var('starts_per_tick') | int }},
            array(
                named_struct(
                    'blocker', 'over_start_limit',
                    'reason', concat(
                        'the limit of starts in one tick (',
                        {{ var('starts_per_tick') | int }},
                        ') is reached, and jobs with older events go first'
                    ),
                    'waits_for', 'the next tick',
                    'since', ordered.oldest_unconsumed_at
                )
            ),
            ordered.blockers
        ) as blockers
    from ordered

)

select * from final

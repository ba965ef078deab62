-- one row per job: every reason why it may not run now, the limit of starts included
with

int_rule_blockers as (

    select * from {{ ref('int_rule_blockers') }}

),

-- Rule D8: those that no rule blocks start in the order of their oldest event. What this tick has
-- started counts already, so that the answer is the same when it is asked again afterwards.
ordered as (

    select
        int_rule_blockers.*,
        count_if(
            int_rule_blockers.decided_tick = {{ var('tick_number') | int }}
        ) over ()
        + row_number() over (
            order by
                cardinality(int_rule_blockers.blockers) > 0,
                int_rule_blockers.oldest_unconsumed_tick,
                int_rule_blockers.job_id
        ) as start_order
    from int_rule_blockers

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

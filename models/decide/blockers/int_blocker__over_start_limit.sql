-- one row per job: beyond the limit of starts in one tick, those with newer events are blocked
select
    jobs.*,
    {{ var('starts_per_tick') | int }} as starts_per_tick,
    if(
        cardinality(jobs.blockers) = 0
        -- What the current tick has started counts already, so that the answer stays the same
        -- when the decision is read again. A tick has ended when it has a row of its own.
        and count_if(
            jobs.decided_tick > coalesce(
                (
                    select max(ledger_ticks.tick_number)
                    from {{ ref('ledger_ticks') }} as ledger_ticks
                    where {{ is_in_tail('ledger_ticks') }}
                ),
                (select folded_through from {{ ref('int_compaction') }})
            )
        ) over ()
        + row_number() over (
            order by
                cardinality(jobs.blockers) > 0,
                jobs.oldest_unconsumed_tick,
                jobs.job_id
        ) > {{ var('starts_per_tick') | int }},
        named_struct(
            'blocker', 'over_start_limit',
            'reason', concat(
                'the limit of starts in one tick (',
                {{ var('starts_per_tick') | int }},
                ') is reached, and jobs with older events go first'
            ),
            'waits_for', 'the next tick',
            'since', jobs.oldest_unconsumed_at
        ),
        null
    ) as over_start_limit
from {{ ref('int_rule_blockers') }} as jobs

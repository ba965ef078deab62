-- one row per job: without a hard dependency and without an unconsumed event it is blocked
select
    jobs.*,
    if(
        jobs.required_count = 0
        and jobs.unconsumed_upstream_count = 0
        and not jobs.is_paused,
        named_struct(
            'blocker', 'nothing_new',
            'reason', 'none of its soft dependencies has anything new',
            'waits_for', 'a new data-change event of any of them',
            'since', jobs.decided_at
        ),
        null
    ) as nothing_new
from {{ ref('int_blocker__required_row_paused') }} as jobs

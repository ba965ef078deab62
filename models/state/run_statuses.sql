-- one row per status of a run
{# Literal rows and no seed: every decision joins them, and they cost it no scan. #}
with

final as (

    select
        run_status,
        control_status,
        is_open,
        holds_job,
        gives_back_events,
        meaning
    from values
        (
            'INTENDED', 'IN_PROGRESS', true, false, false,
            'The start is decided and durable; the Jobs API has not answered yet.'
        ),
        (
            'STARTED', 'IN_PROGRESS', true, false, false,
            'The Jobs API has the run, and it has not ended.'
        ),
        (
            'SUCCEEDED', 'COMPLETED', false, false, false,
            'The run ended well.'
        ),
        (
            'FAILED', 'FAILED', false, true, false,
            'The run ended badly; message has the words of the Jobs API.'
        ),
        (
            'CANCELED', 'FAILED', false, true, false,
            'Somebody cancelled the run.'
        ),
        (
            'TIMED_OUT', 'FAILED', false, true, false,
            'The run took longer than its job allows.'
        ),
        (
            'SKIPPED', 'FAILED', false, true, false,
            'The Jobs API made the run and never ran it: too many went on at once.'
        ),
        (
            'LOST', 'FAILED', false, true, false,
            'The Jobs API no longer finds a run that it had accepted.'
        ),
        (
            'REFUSED', 'FAILED', false, true, false,
            'The Jobs API refused the start, and no run of it is known.'
        ),
        (
            'PARKED', 'FAILED', false, true, false,
            'Whether there is a run, or how it ended, is in doubt; see message.'
        ),
        (
            'SUCCEEDED_ELSEWHERE', 'COMPLETED', false, false, false,
            'The run failed, and a later run that was started by hand succeeded.'
        ),
        (
            'RETRY_REQUESTED', 'NEW_EVENT_AVAILABLE', false, false, true,
            'An operator or a policy requested the failed run again; its events wait.'
        ),
        (
            'RELEASED', 'COMPLETED', false, false, false,
            'An operator discarded the events of the failed run; message states why.'
        ),
        (
            'ACQUIRED', 'IN_PROGRESS', true, false, true,
            'A pull consumer received the events and has not processed them yet.'
        )
            as statuses (
                run_status,
                control_status,
                is_open,
                holds_job,
                gives_back_events,
                meaning
            )

)

select * from final

-- one row per upstream and pair of a job's runs that consumed the same events, none of them requeued
with

ledger_runs as (

    select * from {{ ref('ledger_runs') }}

),

run_statuses as (

    select * from {{ ref('run_statuses') }}

),

given_back as (

    select
        ledger_runs.intent_id,
        ledger_runs.attempt
    from ledger_runs
    inner join run_statuses
        on ledger_runs.run_status = run_statuses.run_status
    where run_statuses.gives_back_events
        and not run_statuses.is_open

),

acquired as (

    select * from run_statuses
    where is_open
        and gives_back_events

),

kept as (

    select distinct
        ledger_runs.job_id,
        ledger_runs.intent_id,
        ledger_runs.attempt,
        ledger_runs.consumed
    from ledger_runs
    left anti join given_back
        on ledger_runs.intent_id = given_back.intent_id
            and ledger_runs.attempt = given_back.attempt
    -- A pull consumer has not consumed what was passed to it before it reports so.
    left anti join acquired
        on ledger_runs.run_status = acquired.run_status

),

taken as (

    select
        kept.job_id,
        concat_ws('/', kept.intent_id, cast(kept.attempt as string)) as start_id,
        inline(kept.consumed) as (upstream_id, from_tick, through_tick)
    from kept

),

final as (

    select
        taken.job_id,
        taken.upstream_id,
        taken.start_id,
        taken.from_tick,
        taken.through_tick,
        others.start_id as other_start_id,
        others.from_tick as other_from_tick,
        others.through_tick as other_through_tick
    from taken
    inner join taken as others
        on taken.job_id = others.job_id
            and taken.upstream_id = others.upstream_id
            and taken.start_id < others.start_id
            and taken.from_tick < others.through_tick
            and taken.through_tick > others.from_tick

)

select * from final

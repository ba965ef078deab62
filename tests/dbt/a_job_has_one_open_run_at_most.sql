-- one row per job with two runs that have not ended
with

int_runs_now as (

    select * from {{ ref('int_runs_now') }}

),

run_statuses as (

    select * from {{ ref('run_statuses') }}

),

final as (

    select
        int_runs_now.job_id,
        count(*) as open_run_count
    from int_runs_now
    inner join run_statuses
        on int_runs_now.run_status = run_statuses.run_status
    where run_statuses.is_open
        -- A pull consumer consumes each of its upstreams by itself.
        and not run_statuses.gives_back_events
    group by int_runs_now.job_id
    having count(*) > 1

)

select * from final

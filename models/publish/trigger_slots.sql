-- one row per trigger and open slot: what it waits for, and until when
with

int_dependencies as (

    select * from {{ ref('int_dependencies') }}
    where sensor_source = 'event_trigger'

),

int_upstreams_now as (

    select * from {{ ref('int_upstreams_now') }}

),

with_places as (

    select
        int_dependencies.sensor_id as trigger_id,
        int_dependencies.job_id,
        int_dependencies.job_name,
        int_dependencies.is_paused,
        from_json(
            int_upstreams_now.position,
            concat_ws(
                ', ',
                'waiting array<timestamp>',
                'missing array<array<string>>',
                'expires array<timestamp>'
            )
        ) as place
    from int_dependencies
    inner join int_upstreams_now
        on int_dependencies.upstream_id = int_upstreams_now.upstream_id

),

listed as (

    select
        with_places.trigger_id,
        with_places.job_id,
        with_places.job_name,
        with_places.is_paused,
        inline(
            transform(
                with_places.place.waiting,
                (waiting, number) -> named_struct(
                    'slot', waiting,
                    'missing', get(with_places.place.missing, number),
                    'expires_at', get(with_places.place.expires, number)
                )
            )
        ) as (slot, missing, expires_at)
    from with_places

),

final as (

    select
        listed.trigger_id,
        listed.job_id,
        listed.job_name,
        listed.slot,
        cardinality(listed.missing) = 0 as is_satisfied,
        if(
            cardinality(listed.missing) = 0,
            'the run of the slot before',
            array_join(listed.missing, ' and ')
        ) as waits_for,
        listed.expires_at,
        listed.is_paused
    from listed

)

select * from final

{{ config(materialized='table', file_format='delta') }}
-- one row per unpaused trigger that cannot be evaluated: why not, in words
with

stg_event_triggers as (

    select * from {{ ref('stg_event_triggers') }}
    where not is_paused

),

int_trigger_conditions as (

    select * from {{ ref('int_trigger_conditions') }}

),

of_rows as (

    select
        stg_event_triggers.upstream_id,
        case
            when stg_event_triggers.trigger_type not in ('PARTITION', 'SNAPSHOT')
                then concat('unknown trigger_type ', stg_event_triggers.trigger_type)
            when not {{ is_time_zone('stg_event_triggers.time_zone') }}
                then concat('unknown time zone ', stg_event_triggers.time_zone)
            when stg_event_triggers.start_at is null
                then 'its start_timestamp is not an instant'
            when coalesce(stg_event_triggers.step_seconds, 0) = 0
                and stg_event_triggers.step_days = 0
                and stg_event_triggers.step_months = 0
                then 'its frequency is not a length of time'
            when stg_event_triggers.may_expire
                and stg_event_triggers.expiry_seconds = 0
                and stg_event_triggers.expiry_days = 0
                and stg_event_triggers.expiry_months = 0
                then 'its expires_after is not a length of time'
        end as fault
    from stg_event_triggers

),

levels as (

    select
        int_trigger_conditions.upstream_id,
        int_trigger_conditions.`table`,
        int_trigger_conditions.levels is null as has_none,
        explode_outer(int_trigger_conditions.levels) as level
    from int_trigger_conditions
    where int_trigger_conditions.trigger_type = 'PARTITION'

),

-- What these let pass is rendered without an error: int_trigger_partitions quotes all but the letters.
of_levels as (

    select
        levels.upstream_id,
        case
            when levels.has_none
                then concat('no partition of ', levels.`table`, ' can be read')
            when levels.level.literal is not null
                then null
            when not levels.level.pattern rlike '[yMdDHms]'
                or not levels.level.pattern rlike concat(
                    '^(?:y{1,4}(?!y)|M{1,4}(?!M)|d{1,2}(?!d)|D{1,3}(?!D)|H{1,2}(?!H)',
                    "|m{1,2}(?!m)|s{1,2}(?!s)|T|[^A-Za-z'])+$"
                )
                or translate(levels.level.pattern, '[]{}#', '') != levels.level.pattern
                then concat(
                        'the pattern ', levels.level.pattern,
                        ' in the partition of ', levels.`table`, ' cannot be rendered'
                    )
            when not {{ is_time_zone('levels.level.time_zone') }}
                then concat(
                        'unknown time zone ', levels.level.time_zone,
                        ' in the partition of ', levels.`table`
                    )
        end as fault
    from levels

),

faults as (

    select
        of_rows.upstream_id,
        of_rows.fault
    from of_rows

    union all

    select
        of_levels.upstream_id,
        of_levels.fault
    from of_levels
    left semi join stg_event_triggers
        on of_levels.upstream_id = stg_event_triggers.upstream_id

),

final as (

    select
        faults.upstream_id,
        concat_ws(
            '; ',
            array_join(sort_array(collect_set(faults.fault)), ' and '),
            'correct the row in seeds/event_triggers.csv'
        ) as fault
    from faults
    where faults.fault is not null
    group by faults.upstream_id

)

select * from final

{{ config(materialized='table', file_format='delta') }}
-- one row per trigger and table: what makes an event count, its levels and tags parsed
-- Over 120 lines: it is the one grammar of a cell with partitions and tags.
with

stg_event_triggers as (

    select * from {{ ref('stg_event_triggers') }}

),

split_up as (

    select
        stg_event_triggers.upstream_id,
        stg_event_triggers.trigger_type,
        stg_event_triggers.`table`,
        stg_event_triggers.time_zone,
        {{ table_key('stg_event_triggers.`table`') }} as table_key,
        case
            when startswith(stg_event_triggers.trigger_partition, '[')
                then transform(
                        from_json(stg_event_triggers.trigger_partition, 'array<string>'),
                        level -> coalesce(level, 'null')
                    )
            else transform(
                    -- A JSON string may have a ; in it.
                    regexp_extract_all(
                        concat(stg_event_triggers.trigger_partition, ';'),
                        '( *"(?:[^"\\\\]|\\\\.)*" *|[^;]*);',
                        1
                    ),
                    level -> trim(level)
                )
        end as spelled_levels,
        transform(
            split(stg_event_triggers.trigger_tags, ';'),
            tag -> xxhash64(
                trim(substring_index(tag, '=', 1)),
                trim(substring(tag, locate('=', tag) + 1))
            )
        ) as required_tag_keys,
        stg_event_triggers.trigger_tags
    from stg_event_triggers

),

-- What begins with a quote and is not a JSON string becomes a function that cannot be evaluated.
with_levels as (

    select
        split_up.*,
        transform(
            split_up.spelled_levels,
            level -> if(
                startswith(level, '"'),
                coalesce(get_json_object(concat('[', level, ']'), '$[0]'), '{'),
                level
            )
        ) as levels
    from split_up

),

-- A level between braces is a function of the slot: offset, unit, pattern, zone; the pattern alone
-- has to be there.
with_functions as (

    select
        with_levels.*,
        transform(
            with_levels.levels,
            level -> named_struct(
                'literal', if(startswith(level, '{'), null, level),
                'offset', {{
                    units_of_time(
                        "cast(coalesce(nullif(regexp_extract(level, '^[{] *([+-]?[0-9]{1,6}) ', 1), ''), '0') as bigint)",
                        "upper(regexp_extract(level, '^[{] *[+-]?[0-9]{1,6} +([A-Za-z]+) ', 1))"
                    )
                }},
                'shape', regexp_replace(
                    level, '^[{] *([+-]?[0-9]{1,6} +[A-Za-z]+ +)?| *[}]$', ''
                )
            )
        ) as functions
    from with_levels

),

final as (

    select
        with_functions.upstream_id,
        with_functions.trigger_type,
        with_functions.`table`,
        with_functions.table_key,
        cast(pmod(with_functions.table_key, 16) as int) as bucket,
        transform(
            with_functions.functions,
            level -> named_struct(
                'literal', level.literal,
                'months', coalesce(level.offset.months, 0),
                'days', coalesce(level.offset.days, 0),
                'seconds', coalesce(level.offset.seconds, 0),
                'pattern', if(
                    level.shape like "'%",
                    regexp_extract(level.shape, "^'([^']*)'", 1),
                    regexp_extract(level.shape, '^[^ ]+', 0)
                ),
                'time_zone', coalesce(
                    nullif(
                        regexp_extract(level.shape, "^(?:'[^']*'|[^' ]+) +([^ ]+)$", 1),
                        ''
                    ),
                    with_functions.time_zone
                )
            )
        ) as levels,
        coalesce(with_functions.required_tag_keys, cast(array() as array<bigint>))
            as required_tag_keys,
        with_functions.trigger_tags
    from with_functions

)

select * from final

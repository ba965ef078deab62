-- one row per open slot of a partition trigger and table of the trigger: the partition that it waits for
with

int_trigger_slots as (

    select * from {{ ref('int_trigger_slots') }}
    where trigger_type = 'PARTITION'

),

int_trigger_conditions as (

    select * from {{ ref('int_trigger_conditions') }}

),

rendered as (

    select
        int_trigger_slots.upstream_id,
        int_trigger_slots.slot,
        int_trigger_slots.is_slot_new,
        int_trigger_slots.is_ready,
        int_trigger_slots.missing_before,
        int_trigger_slots.expires_at,
        int_trigger_slots.is_overdue,
        int_trigger_slots.may_release,
        int_trigger_conditions.`table`,
        int_trigger_conditions.table_key,
        int_trigger_conditions.bucket,
        int_trigger_conditions.required_tag_keys,
        int_trigger_conditions.trigger_tags,
        transform(
            int_trigger_conditions.levels,
            level -> coalesce(
                level.literal,
                date_format(
                    from_utc_timestamp(
                        timestamp_seconds(
                            unix_seconds(int_trigger_slots.slot) + level.seconds
                        ),
                        level.time_zone
                    )
                    + make_interval(0, level.months, 0, level.days),
                    -- All but the letters stands for itself.
                    regexp_replace(level.pattern, '([^yMdDHms]+)', "'$1'")
                )
            )
        ) as wanted
    from int_trigger_slots
    inner join int_trigger_conditions
        on int_trigger_slots.upstream_id = int_trigger_conditions.upstream_id

),

final as (

    select
        rendered.upstream_id,
        rendered.slot,
        rendered.is_slot_new,
        rendered.is_ready,
        rendered.missing_before,
        rendered.expires_at,
        rendered.is_overdue,
        rendered.may_release,
        rendered.bucket,
        xxhash64(rendered.table_key, array_join(rendered.wanted, char(31)))
            as partition_key,
        rendered.required_tag_keys,
        concat(
            'partition ',
            array_join(rendered.wanted, ';'),
            ' of ',
            rendered.`table`,
            coalesce(concat(' with ', rendered.trigger_tags), '')
        ) as waits_for
    from rendered

)

select * from final

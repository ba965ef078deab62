-- one row per snapshot trigger with a slot due at the newest evaluation, or that is new, if it has events
-- Over 120 lines: the state table and the tail are joined to the triggers apart, each by its own columns.
with

int_trigger_due_slots as (

    select * from {{ ref('int_trigger_due_slots') }}
    where takes_changes

),

int_trigger_conditions as (

    select * from {{ ref('int_trigger_conditions') }}

),

int_event_partitions as (

    select * from {{ ref('int_event_partitions') }} as int_event_partitions
    where {{ is_in_tail('int_event_partitions') }}

),

event_partitions as (

    select * from {{ ref('event_partitions') }}

),

evaluated as (

    select
        int_trigger_due_slots.upstream_id,
        int_trigger_due_slots.looked_through,
        int_trigger_due_slots.look_tick,
        int_trigger_conditions.table_key,
        int_trigger_conditions.bucket,
        int_trigger_conditions.required_tag_keys
    from int_trigger_due_slots
    inner join int_trigger_conditions
        on int_trigger_due_slots.upstream_id = int_trigger_conditions.upstream_id

),

-- Eras and buckets are folders: only what comes from a join keeps Delta Kernel from reading all of them,
-- and Spark plans that where the other side has a comparison.
eras as (

    select
        explode(
            sequence(
                cast(min(coalesce(evaluated.looked_through, 0)) div 10000 as int),
                cast(max(evaluated.look_tick) div 10000 as int)
            )
        ) as era
    from evaluated
    where coalesce(evaluated.looked_through, 0) < evaluated.look_tick

),

new_tables as (

    select distinct
        evaluated.bucket,
        evaluated.table_key
    from evaluated
    where coalesce(evaluated.looked_through, -1) = -1

),

known as (

    select /*+ broadcast(new_tables) */
        event_partitions.table_key,
        event_partitions.tick_number
    from event_partitions
    inner join new_tables
        on event_partitions.bucket = new_tables.bucket
            and event_partitions.table_key = new_tables.table_key

    union all

    select
        int_event_partitions.table_key,
        int_event_partitions.tick_number
    from int_event_partitions

),

newest_changes as (

    select
        known.table_key,
        max(known.tick_number) as tick_number
    from known
    group by known.table_key

),

-- A trigger that is new begins with the newest change that is known of its tables.
begun as (

    select
        evaluated.upstream_id,
        evaluated.table_key,
        evaluated.bucket,
        evaluated.required_tag_keys,
        coalesce(
            evaluated.looked_through,
            max(newest_changes.tick_number) over (partition by evaluated.upstream_id) - 1
        ) as looked_through
    from evaluated
    left join newest_changes
        on evaluated.table_key = newest_changes.table_key

),

-- Joined apart: era and bucket are folders of the one, and no columns of the other's files.
matched as (

    select /*+ broadcast(eras), broadcast(begun) */
        begun.upstream_id,
        begun.looked_through,
        begun.required_tag_keys,
        event_partitions.tag_keys,
        event_partitions.change_key,
        event_partitions.tick_number,
        event_partitions.event_id
    from event_partitions
    inner join eras
        on event_partitions.era = eras.era
    inner join begun
        on event_partitions.bucket = begun.bucket
            and event_partitions.table_key = begun.table_key
            and event_partitions.tick_number > begun.looked_through

    union all

    select
        begun.upstream_id,
        begun.looked_through,
        begun.required_tag_keys,
        int_event_partitions.tag_keys,
        int_event_partitions.change_key,
        int_event_partitions.tick_number,
        int_event_partitions.event_id
    from int_event_partitions
    inner join begun
        on int_event_partitions.table_key = begun.table_key
            and int_event_partitions.tick_number > begun.looked_through

),

came as (

    select
        matched.upstream_id,
        matched.looked_through,
        max(struct(matched.tick_number, matched.event_id)) as event
    from matched
    where cardinality(array_except(matched.required_tag_keys, matched.tag_keys)) = 0
    group by matched.upstream_id, matched.looked_through, matched.change_key

),

final as (

    select
        came.upstream_id,
        came.looked_through,
        sort_array(collect_list(came.event)) as events
    from came
    group by came.upstream_id, came.looked_through

)

select * from final

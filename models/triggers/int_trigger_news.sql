-- one row per trigger whose tables have events that no fold has taken yet: some look may not have seen them
with

int_trigger_levels as (

    select * from {{ ref('int_trigger_levels') }}

),

int_event_partitions as (

    select * from {{ ref('int_event_partitions') }} as int_event_partitions
    where {{ is_in_tail('int_event_partitions') }}

),

final as (

    select distinct int_trigger_levels.upstream_id
    from int_trigger_levels
    left semi join int_event_partitions
        on int_trigger_levels.table_key = int_event_partitions.table_key

)

select * from final

-- one row per trigger whose tables have uncompacted events: some evaluation may not have read them
with

int_trigger_conditions as (

    select * from {{ ref('int_trigger_conditions') }}

),

int_event_partitions as (

    select * from {{ ref('int_event_partitions') }} as int_event_partitions
    where {{ is_in_tail('int_event_partitions') }}

),

final as (

    select distinct int_trigger_conditions.upstream_id
    from int_trigger_conditions
    left semi join int_event_partitions
        on int_trigger_conditions.table_key = int_event_partitions.table_key

)

select * from final

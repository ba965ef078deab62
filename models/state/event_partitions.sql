{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        partition_by=['era', 'bucket']
    )
}}
-- one row per data-change event and partition that it touched: narrow, for queries over all history
with

int_event_partitions as (

    select * from {{ ref('int_event_partitions') }} as int_event_partitions
    {% if is_incremental() %}
    where int_event_partitions.tick_number > {{ var('fold_after') | int }}
        and int_event_partitions.tick_number <= {{ var('folded_through') | int }}
    {% endif %}

),

final as (

    select
        int_event_partitions.tick_number,
        int_event_partitions.table_key,
        int_event_partitions.partition_key,
        int_event_partitions.event_id,
        int_event_partitions.change_key,
        int_event_partitions.tag_keys,
        int_event_partitions.era,
        int_event_partitions.bucket
    from int_event_partitions

)

select * from final

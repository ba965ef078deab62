{{
    config(
        materialized='incremental',
        incremental_strategy='merge',
        unique_key='order_id',
        post_hook='{{ heartbeat.record_partitions() }}'
    )
}}

-- one row per order of a shop, as it was last modified
with

source as (

    select *
    from {{ source('bronze', 'orders') }}
    where {{ heartbeat.pending_partitions(source('bronze', 'orders')) }}

),

orders as (

    select
        ----------  ids
        {{ heartbeat.generate_surrogate_key(['shop', 'order_number']) }} as order_id,
        shop,
        order_number,
        ----------  what was ordered
        status,
        amount,
        ----------  metadata
        last_modified_at,
        p_extracted_at as _extracted_at
    from source

),

final as (

    select *
    from {{ heartbeat.deduplicate(
        'orders',
        keys='order_id',
        order_by=['last_modified_at desc', '_extracted_at desc'],
        known=this if is_incremental() else none
    ) }}

)

select * from final

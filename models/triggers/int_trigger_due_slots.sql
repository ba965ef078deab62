{{ config(materialized='table', file_format='delta') }}
-- one row per trigger that the newest evaluation reads: which of its slots open, by their numbers
with

int_trigger_opening_slots as (

    select * from {{ ref('int_trigger_opening_slots') }}

)

select * from int_trigger_opening_slots

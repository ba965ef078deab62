{{ config(materialized='table') }}
-- one row per upstream and job
with

int_sensor_rows as (

    select * from {{ ref('int_sensor_rows') }}

)

select * from int_sensor_rows

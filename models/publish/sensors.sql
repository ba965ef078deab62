{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        on_schema_change='append_new_columns',
        full_refresh=false
    )
}}
-- one row per upstream and job
-- depends_on: {{ ref('int_sensor_rows') }}
{{ without_rows() }}

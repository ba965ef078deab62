{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        on_schema_change='append_new_columns',
        full_refresh=false
    )
}}
-- one row per control row, with the fifteen columns of the control table
-- depends_on: {{ ref('int_control_rows') }}
{{ without_rows() }}

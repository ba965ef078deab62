{#- A row for each key that a complete extract lacks, in the shape of the staged rows, as a query. It has no number, since
    nobody sent it. -#}
{% macro refresh_absent_rows(load, batch) -%}
    select
        {{ heartbeat.refresh_values_for(load, load.tables.staging, load.settings.key, 'absent') }},
        cast(null as bigint) as s_hash,
        {{ heartbeat.refresh_extract_time(load.settings, batch) }} as s_update_timestamp,
        true as s_deleted_flag,
        false as s_is_rejected,
        cast({{ batch.id }} as bigint) as s_input_id,
        cast(null as string) as s_record_status_code
    from ({{ heartbeat.refresh_absent_keys(load, batch) }}) as absent
{%- endmacro %}

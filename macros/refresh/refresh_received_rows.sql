{#- What batches of the archive say of some keys, as a query. A complete extract that lacks a key says so too: which of the
    keys it lacks follows from its rows, as what was deleted at its receipt depends on batches that may be gone. -#}
{% macro refresh_received_rows(load, live) -%}
    {%- set settings, batches = load.settings, load.tables.batches -%}
    {%- set same = heartbeat.refresh_same_key(settings, 'batches', 'affected') -%}
    select batches.*
    from {{ batches }} as batches
    left semi join affected
        on {{ same }}
    where
        batches.s_input_id in ({{ live | map(attribute='id') | join(", ") or "0" }})
        and batches.s_record_status_code not in ('X', 'R')
        and batches.s_row_num is not null
    {%- if settings['deletes.complete'] and live %}
    union all
    select {{ heartbeat.refresh_values_for(load, batches,
        settings.key + ['s_input_id', 's_update_timestamp', 's_deleted_flag', 's_record_status_code'], 'absent') }}
    from (
        select
            {{ heartbeat.refresh_names(settings.key, 'affected') }},
            cast(taken.id as bigint) as s_input_id,
            taken.taken_at as s_update_timestamp,
            true as s_deleted_flag,
            'D' as s_record_status_code
        from affected
        cross join values
            {%- for batch in live %}
            ({{ batch.id }}, {{ heartbeat.refresh_extract_time(settings, batch) }}){{ "," if not loop.last }}
            {%- endfor %} as taken (id, taken_at)
        left anti join {{ batches }} as batches
            on batches.s_input_id = taken.id and batches.s_row_num is not null and {{ same }}
    ) as absent
    {%- endif %}
{%- endmacro %}

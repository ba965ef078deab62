{#- The data-change events of a range of time, one row per change, as in the public view. Filters that hold for all
    rows of a change are applied to the ledger's rows, as literals, so that whole files are skipped; two clocks that
    report one snapshot may differ by a day. -#}
{% macro data_change_events_between(
    start, end, table=none, partition=none, tags=none, operation=none, by='registration'
) -%}
    {%- set instant = heartbeat._event_time_column(by) -%}
    {%- set leeway = 86400000 if by == 'snapshot' else 0 -%}
    {%- set from_ms = heartbeat._epoch_milliseconds(start, 'start') -%}
    {%- set to_ms = heartbeat._epoch_milliseconds(end, 'end') -%}
    {%- if from_ms and to_ms and from_ms | int > to_ms | int -%}
        {{ exceptions.raise_compiler_error("start " ~ start ~ " comes after end " ~ end ~ "; swap the two") }}
    {%- endif -%}
    select
        event_ts, `table`, `partition`, snapshot_id, snapshot_ts, prev_snapshot_id, table_format,
        operation_type, tags, change_name as event_id, upstream_id, tick_number
    from (
        select
            *,
            coalesce(change_id, event_id) as change_name,
            row_number() over (
                partition by event_ts, `table`, coalesce(change_id, event_id)
                order by tick_number desc, cardinality(tags) desc, event_id asc
            ) as newest_first
        from {{ ref('ledger_data_change_events') }}
        where upstream_id not like 'trigger:%'
            {{- " and " ~ instant ~ " >= " ~ (from_ms | int - leeway) if from_ms }}
            {{- " and " ~ instant ~ " < " ~ (to_ms | int + leeway) if to_ms }}
            {%- if table is not none %}
            and {{ heartbeat._table_spelling('`table`') }} = {{ heartbeat._table_spelling(heartbeat._sql_literal(table, 'string')) }}
            {%- endif %}
    ) as events
    where newest_first = 1
        {{- " and " ~ instant ~ " >= " ~ from_ms if from_ms }}
        {{- " and " ~ instant ~ " < " ~ to_ms if to_ms }}
        and {{ heartbeat._event_condition('events', partition, tags, operation) }}
{%- endmacro %}

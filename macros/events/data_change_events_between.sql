{#- The data-change events of a range of time, one row per change; the public view is the same without a range. Filters
    that hold for all rows of a change are applied to the ledger's rows, as literals, so that whole files are skipped. -#}
{% macro data_change_events_between(
    start, end, table=none, partition=none, tags=none, operation=none, by='registration'
) -%}
    {%- set asked = heartbeat._event_question({'start': start, 'end': end, 'table': table, 'partition': partition,
        'tags': tags, 'operation': operation, 'by': by}) -%}
    select
        event_ts, `table`, `partition`, snapshot_id, snapshot_ts, prev_snapshot_id, table_format,
        operation_type, tags, change_name as event_id, upstream_id, tick_number
    from (
        -- By columns alone, so that a condition on the table or the time reaches the files.
        select
            *,
            row_number() over (
                partition by event_ts, `table`, change_name
                order by tick_number desc, cardinality(tags) desc, event_id asc
            ) as newest_first
        from (
            -- Events recorded before changes had names of their own are one each.
            select *, coalesce(change_id, event_id) as change_name
            from {{ ref('ledger_data_change_events') }}
            -- What a trigger passes on is a copy of an event that is here already.
            where upstream_id not like 'trigger:%'
                {{- " and " ~ asked.column ~ " >= " ~ (asked.start - asked.leeway) if asked.start is not none }}
                {{- " and " ~ asked.column ~ " < " ~ (asked.end + asked.leeway) if asked.end is not none }}
                {%- if asked.table is not none %}
                and {{ heartbeat._table_spelling('`table`') }}
                    = {{ heartbeat._table_spelling(heartbeat._sql_literal(asked.table, 'string')) }}
                {%- endif %}
        ) as originals
    ) as events
    where newest_first = 1
        {{- " and " ~ asked.column ~ " >= " ~ asked.start if asked.start is not none }}
        {{- " and " ~ asked.column ~ " < " ~ asked.end if asked.end is not none }}
        {{- " and operation_type = '" ~ asked.operation ~ "'" if asked.operation is not none }}
        {%- for key, value in asked.tags.items() %}
        and try_element_at(tags, {{ heartbeat._sql_literal(key, 'string') }}) = {{ heartbeat._sql_literal(value, 'string') }}
        {%- endfor %}
        {%- if asked.partition is not none %}
        and {{ heartbeat._has_partition(asked.partition) }}
        {%- endif %}
{%- endmacro %}

{#- A condition: the event names this partition, itself or in its tag partitions. -#}
{% macro _has_partition(levels) -%}
    {%- set wanted -%}
        array({% for level in levels %}{{ heartbeat._sql_literal(level, 'string') }}{{ ", " if not loop.last }}{% endfor %})
    {%- endset -%}
    coalesce(
        transform(
            `partition`,
            level -> if(
                level like '"%',
                coalesce(get_json_object(concat('[', level, ']'), '$[0]'), level),
                level
            )
        ) = {{ wanted }},
        exists(
            from_json(try_element_at(tags, 'partitions'), 'array<array<string>>'),
            named -> transform(named, level -> coalesce(level, 'null')) = {{ wanted }}
        )
        {%- if levels | length == 1 %}
        or exists(
            from_json(try_element_at(tags, 'partitions'), 'array<string>'),
            named -> array(coalesce(named, 'null')) = {{ wanted }}
        )
        {%- endif %}
    )
{%- endmacro %}

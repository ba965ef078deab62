{#- What the ledger says of each batch at last, as a query: its newest event, its rows by code, its conflicts, and the rows of the hub
    by code when it was brought in. A batch that left the hub as it was did not count them: then those of the event before hold.
    `there` are the columns of the ledger, if it may have been made by an earlier version of this package. -#}
{% macro refresh_newest_of_ledger(load, there=none) -%}
    {%- set there = heartbeat.refresh_ledger_columns().keys() | list if there is none else there -%}
    {%- set in_order = heartbeat.refresh_order_of_ledger(there) -%}
    select
        s_input_id,
        max_by(struct(ledger.*), {{ in_order }}) as newest,
        max_by(code_counts, {{ in_order }}) filter (where code_counts is not null) as code_counts,
        max_by(conflict_count, {{ in_order }}) filter (where conflict_count is not null) as conflict_count,
        max_by(hub_then, {{ in_order }}) filter (where state = 'COMPLETE') as hub_code_counts,
        max_by(recorded_at, {{ in_order }}) as recorded_at
    from (
        select *, last_value(hub_code_counts, true) over (
            order by {{ "coalesce(step, 0), " if 'step' in there }}recorded_at
        ) as hub_then
        from {{ load.tables.ledger }}
    ) as ledger
    group by s_input_id
{%- endmacro %}

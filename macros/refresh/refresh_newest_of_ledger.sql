{#- What the ledger says of each batch at last, as a query: its newest event, its rows by code, its conflicts, and the rows of the hub
    by code when it was brought in. A batch that left the hub as it was did not count them: then those of the event before hold. -#}
{% macro refresh_newest_of_ledger(load) -%}
    select
        s_input_id,
        max_by(struct(ledger.*), recorded_at) as newest,
        max_by(code_counts, recorded_at) filter (where code_counts is not null) as code_counts,
        max_by(conflict_count, recorded_at) filter (where conflict_count is not null) as conflict_count,
        max_by(hub_then, recorded_at) filter (where state = 'COMPLETE') as hub_code_counts,
        max(recorded_at) as recorded_at
    from (
        select *, last_value(hub_code_counts, true) over (order by recorded_at) as hub_then
        from {{ load.tables.ledger }}
    ) as ledger
    group by s_input_id
{%- endmacro %}

{#- What became of each batch and how much of it is left, as a query. -#}
{% macro refresh_metrics(load) -%}
    {%- set is_ranged = load.settings.type in ('timestamp', 'sequence') -%}
    with batches as (
        select
            s_input_id,
            max_by(struct(ledger.*), recorded_at) as newest,
            max_by(code_counts, recorded_at) filter (where code_counts is not null) as code_counts,
            max(recorded_at) as recorded_at
        from {{ load.tables.ledger }} as ledger
        group by s_input_id
    ),
    {%- if is_ranged %}

    effective_ranges as (
        {{ heartbeat.refresh_effective_ranges(load.settings) }}
    ),
    {%- endif %}

    effective as (
        select s_input_id, count(*) as record_count
        from {{ load.tables.hub }}
        {{ "where not s_deleted_flag" if load.settings.get('deletes.mode') == 'soft' }}
        group by s_input_id
    )

    select
        batches.s_input_id, batches.newest.batch, batches.newest.state, batches.newest.received_at,
        batches.recorded_at, batches.newest.record_count,
        coalesce(effective.record_count, 0) as effective_record_count,
        batches.code_counts, batches.newest.message, batches.newest.intent_id
        {{ ", effective_ranges.ranges as effective_ranges" if is_ranged }}
    from batches
    left outer join effective
        on batches.s_input_id = effective.s_input_id
    {%- if is_ranged %}
    left outer join effective_ranges
        on batches.s_input_id = effective_ranges.s_input_id
    {%- endif %}
{%- endmacro %}

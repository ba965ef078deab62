{#- What became of each batch and how much of it is left, as a query. -#}
{% macro refresh_metrics(load) -%}
    {%- set is_key, is_ranged = load.settings.type == 'key', load.settings.type in ('timestamp', 'sequence') -%}
    with batches as (
        {{ heartbeat.refresh_newest_of_ledger(load) }}
    ),
    {%- if is_ranged %}

    effective_ranges as (
        {{ heartbeat.refresh_effective_ranges(load) }}
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
        {{- ", batches.hub_code_counts, batches.conflict_count" if is_key }}
        {{- ", effective_ranges.ranges as effective_ranges" if is_ranged }}
    from batches
    left outer join effective
        on batches.s_input_id = effective.s_input_id
    {%- if is_ranged %}
    left outer join effective_ranges
        on batches.s_input_id = effective_ranges.s_input_id
    {%- endif %}
{%- endmacro %}

{#- Makes the view of what became of each batch, unless it is there. -#}
{% macro refresh_make_metrics(load) -%}
    {%- set tables = load.tables -%}
    {%- if load_relation(tables.metrics) is not none -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set query -%}
        create or replace view {{ tables.metrics }} as
        with batches as (
            select
                s_input_id,
                max_by(struct(state, batch, received_at, record_count, message, intent_id), recorded_at) as newest,
                max_by(code_counts, recorded_at) filter (where code_counts is not null) as code_counts,
                max(recorded_at) as recorded_at
            from {{ tables.ledger }}
            group by s_input_id
        ),

        effective as (
            select s_input_id, count(*) as record_count
            from {{ tables.hub }}
            {{ "where not s_deleted_flag" if load.settings.get('deletes.mode') == 'soft' }}
            group by s_input_id
        )

        select
            batches.s_input_id, batches.newest.batch, batches.newest.state, batches.newest.received_at,
            batches.recorded_at, batches.newest.record_count,
            coalesce(effective.record_count, 0) as effective_record_count,
            batches.code_counts, batches.newest.message, batches.newest.intent_id
        from batches
        left outer join effective
            on batches.s_input_id = effective.s_input_id
    {%- endset -%}
    {%- do run_query(query) -%}
    {%- do adapter.cache_added(tables.metrics) -%}
{%- endmacro %}

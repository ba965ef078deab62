{#- CTEs that find the newest row of each key among the rows of some relations: `known`, `numbered` and `newest`.
    The columns of each state table stand here once, for the table and for the view that adds the uncompacted tail. -#}
{% macro newest_row(state, relations) -%}
    {%- set states = {
        'upstream_state': [['upstream_id'], ['tick_number'], [
            'upstream_id', 'tick_number', 'recorded_at', 'outcome', 'reason', 'position', 'upstream_value',
            'latest_event_tick', 'latest_event_at', 'recent_events', 'failing_since',
        ]],
        'run_state': [['intent_id', 'attempt'], ['tick_number', 'step_number'], [
            'job_id', 'job_name', 'intent_id', 'attempt', 'token', 'run_id', 'run_status', 'reported_by',
            'consumed', 'event_ids', 'event_count', 'parameters', 'decided_tick', 'decided_at', 'started_at',
            'ended_at', 'life_cycle_state', 'result_state', 'state', 'termination_code', 'message',
            'run_page_url', 'tick_number', 'step_number', 'recorded_at',
        ]],
        'dependency_state': [['job_id', 'upstream_id'], ['tick_number', 'step_number'], [
            'job_id', 'upstream_id', 'from_tick', 'through_tick', 'tick_number', 'step_number', 'recorded_at',
            'intent_id', 'attempt', 'run_status', 'run_id', 'message', 'decided_tick', 'decided_at', 'ended_at',
        ]],
    } -%}
    {%- set keys, newest_by, columns = states[state] -%}
    known as (
    {%- for relation in relations %}

        select
        {%- for column in columns %}
            {{ relation }}.{{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
        from {{ relation }}

        {{ 'union all' if not loop.last }}
    {%- endfor %}

    ),

    numbered as (

        select
            known.*,
            row_number() over (
                partition by {% for key in keys %}known.{{ key }}{{ ', ' if not loop.last }}{% endfor %}
                order by {% for column in newest_by %}known.{{ column }} desc{{ ', ' if not loop.last }}{% endfor %}
            ) as newest_first
        from known

    ),

    newest as (

        select
        {%- for column in columns %}
            numbered.{{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
        from numbered
        where numbered.newest_first = 1

    )
{%- endmacro %}

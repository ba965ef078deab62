{#- What a ledger says of each batch, in the order in which they were received. `there` are the columns that it has, if it may
    have been made by an earlier version of this package. -#}
{% macro refresh_ledger_batches(ledger, there=none) -%}
    {%- set there = heartbeat.refresh_ledger_columns().keys() | list if there is none else there -%}
    {%- set read = ['state', 'batch', 'received_at', 'settings', 'fingerprint', 'record_count', 'range_from', 'range_to',
        'is_archived', 'step', 'watermark'] -%}
    {%- set batches = [] -%}
    {%- set query -%}
        select to_json(named_struct(
            'id', s_input_id,
            'received_micros', unix_micros(newest.received_at)
            {%- for name in read if name in there %}, '{{ name }}', cast(newest.{{ name }} as string){% endfor %}
        ), map('ignoreNullFields', 'false'))
        from (
            select
                s_input_id,
                max_by(struct({{ read | select('in', there) | join(", ") }}), {{ heartbeat.refresh_order_of_ledger(there) }}) as newest
            from {{ ledger }}
            group by s_input_id
        )
    {%- endset -%}
    {%- for batch in heartbeat.commits_in(query) | sort(attribute='id') -%}
        {%- do batch.setdefault('watermark', none) -%}
        {%- do batch.update(is_vacuumed=(batch.is_archived == 'false'), step=(batch.get('step') or 0) | int) -%}
        {%- do batches.append(batch) -%}
    {%- endfor -%}
    {%- do return(batches) -%}
{%- endmacro %}

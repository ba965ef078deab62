{#- What the ledger says of each batch, in the order in which they were received; the ledger is made if it is not
    there. -#}
{% macro refresh_ledger_batches(ledger) -%}
    {%- set read = ['state', 'batch', 'received_at', 'settings', 'fingerprint', 'record_count', 'range_from', 'range_to',
        'is_archived'] -%}
    {%- set batches = [] -%}
    {%- if load_relation(ledger) is none -%}
        {%- set columns = [] -%}
        {%- for name, type in heartbeat.refresh_ledger_columns().items() -%}
            {%- do columns.append(name ~ " " ~ type) -%}
        {%- endfor -%}
        {%- do run_query("create table if not exists " ~ ledger ~ " (" ~ columns | join(", ") ~ ") using delta") -%}
        {%- do adapter.cache_added(ledger) -%}
        {%- do return(batches) -%}
    {%- endif -%}
    {%- set query -%}
        select to_json(named_struct(
            'id', s_input_id
            {%- for name in read %}, '{{ name }}', cast(newest.{{ name }} as string){% endfor %}
        ), map('ignoreNullFields', 'false'))
        from (
            select s_input_id, max_by(struct({{ read | join(", ") }}), recorded_at) as newest
            from {{ ledger }}
            group by s_input_id
        )
    {%- endset -%}
    {%- for batch in heartbeat.commits_in(query) | sort(attribute='id') -%}
        {%- do batch.update(is_vacuumed=(batch.is_archived == 'false')) -%}
        {%- do batches.append(batch) -%}
    {%- endfor -%}
    {%- do return(batches) -%}
{%- endmacro %}

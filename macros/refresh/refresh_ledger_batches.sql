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
        select s_input_id {%- for name in read %}, cast(newest.{{ name }} as string) as {{ name }}{% endfor %}
        from (
            select s_input_id, max_by(struct({{ read | join(", ") }}), recorded_at) as newest
            from {{ ledger }}
            group by s_input_id
        )
        order by s_input_id
    {%- endset -%}
    {%- for row in heartbeat.rows_of(query, 1 + read | length) -%}
        {%- set batch = {'id': row[0] | int} -%}
        {%- for name in read -%}
            {%- do batch.update({name: row[loop.index]}) -%}
        {%- endfor -%}
        {#- agate reads a truth value where it can. -#}
        {%- do batch.update(is_vacuumed=(batch.is_archived | string | lower == 'false')) -%}
        {%- do batches.append(batch) -%}
    {%- endfor -%}
    {%- do return(batches) -%}
{%- endmacro %}

{#- Appends to the ledger what has become of batches, in one commit, which takes the next step. If another run has taken that step
    since this one read the ledger, nothing is appended and this run ends: of two runs that write at the same time, Delta refuses one. -#}
{% macro refresh_record(load, batches, state, message=none) -%}
    {%- set rows = [] -%}
    {%- for batch in batches -%}
        {%- set counts, hub_counts = batch.get('code_counts'), batch.get('hub_code_counts') -%}
        {%- set values = {
            's_input_id': batch.id,
            'state': "'" ~ state ~ "'",
            'recorded_at': 'current_timestamp()',
            'received_at': "'" ~ batch.received_at ~ "'",
            'invocation_id': "'" ~ invocation_id ~ "'",
            'intent_id': heartbeat.seed_literal(env_var('HEARTBEAT_INTENT_ID', '') or none, 'string'),
            'batch': heartbeat.seed_literal(batch.batch, 'string'),
            'settings': heartbeat.seed_literal(tojson(load.settings, sort_keys=true), 'string'),
            'fingerprint': heartbeat.seed_literal(batch.fingerprint, 'string'),
            'record_count': batch.record_count,
            'code_counts': heartbeat.refresh_map_of(counts) if counts else none,
            'hub_code_counts': heartbeat.refresh_map_of(hub_counts) if hub_counts is not none and state != 'STAGED' else none,
            'conflict_count': batch.get('conflict_count'),
            'range_from': batch.range_from,
            'range_to': batch.range_to,
            'message': heartbeat.seed_literal(message, 'string'),
            'is_archived': (not batch.is_vacuumed) | string | lower,
            'step': load.step + 1,
            'watermark': heartbeat.seed_literal(batch.get('watermark'), 'string'),
        } -%}
        {%- set items = [] -%}
        {%- for name, type in heartbeat.refresh_ledger_columns().items() -%}
            {%- do items.append("cast(" ~ ('null' if values[name] is none else values[name]) ~ " as " ~ type ~ ") as " ~ name) -%}
        {%- endfor -%}
        {%- do rows.append("select " ~ items | join(", ")) -%}
        {%- do batch.update(state=state) -%}
    {%- endfor -%}
    {%- set names = heartbeat.refresh_ledger_columns().keys() | list -%}
    {#- A merge reads the ledger in its own transaction, an insert with a subquery need not. -#}
    {%- set query -%}
        merge into {{ load.tables.ledger }} as ledger
        using ({{ rows | join(" union all ") }}) as given
        on ledger.step > {{ load.step }}
        when not matched then insert ({{ names | join(", ") }}) values (given.{{ names | join(", given.") }})
    {%- endset -%}
    {%- if heartbeat.rows_of(query, 4)[0][3] | int != rows | length -%}
        {%- do exceptions.raise_compiler_error(
            load.name ~ ": another run has written to " ~ load.tables.ledger ~ " since this run read it, so this run ends "
            ~ "without recording " ~ state ~ " of batch " ~ batches | map(attribute='id') | join(", ") ~ ": run the model again") -%}
    {%- endif -%}
    {%- do load.update(step=load.step + 1) -%}
{%- endmacro %}

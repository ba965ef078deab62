{#- Appends to the ledger what has become of batches, in one commit. -#}
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
        } -%}
        {%- set items = [] -%}
        {%- for name, type in heartbeat.refresh_ledger_columns().items() -%}
            {%- do items.append("cast(" ~ ('null' if values[name] is none else values[name]) ~ " as " ~ type ~ ") as " ~ name) -%}
        {%- endfor -%}
        {%- do rows.append("select " ~ items | join(", ")) -%}
        {%- do batch.update(state=state) -%}
    {%- endfor -%}
    {%- do run_query("insert into " ~ load.tables.ledger ~ " " ~ rows | join(" union all ")) -%}
{%- endmacro %}

{#- The columns of the ledger of a refresh model, with their types. A row is an event of one batch; the newest row
    of a batch, that of the greatest `step`, says what became of it. A new column goes to the end, where a ledger gets it
    that was made before. -#}
{% macro refresh_ledger_columns() -%}
    {%- do return({
        's_input_id': 'bigint',
        'state': 'string',
        'recorded_at': 'timestamp',
        'received_at': 'timestamp',
        'invocation_id': 'string',
        'intent_id': 'string',
        'batch': 'string',
        'settings': 'string',
        'fingerprint': 'string',
        'record_count': 'bigint',
        'code_counts': 'map<string, bigint>',
        'hub_code_counts': 'map<string, bigint>',
        'conflict_count': 'bigint',
        'range_from': 'decimal(38, 0)',
        'range_to': 'decimal(38, 0)',
        'message': 'string',
        'is_archived': 'boolean',
        'step': 'bigint',
        'watermark': 'string',
    }) -%}
{%- endmacro %}

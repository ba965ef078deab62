{#- Fills history and hub of a key refresh from the first batch: there is nothing to close, to touch or to replace. -#}
{% macro refresh_fill_by_key(load, batch) -%}
    {%- set given = heartbeat.refresh_shape(load, load.tables.batches) | map(attribute='name') | list -%}
    {%- set of_batch = load.tables.batches ~ " as given where s_input_id = " ~ batch.id ~ " and " -%}
    {%- set opens = "s_record_status_code = 'N'" -%}
    {%- set is_version = opens -%}
    {%- if load.settings['deletes.when'] -%}
        {%- set is_version = "(" ~ opens ~ " or s_record_status_code = 'U' and s_deleted_flag)" -%}
    {%- endif -%}
    {%- do heartbeat.refresh_fill(load, 'history', {'names': given, 'source': of_batch ~ is_version,
        'values': {'s_effective_from': 'given.s_update_timestamp'}}) -%}
    {%- do heartbeat.refresh_fill(load, 'hub', {'names': given, 'source': of_batch ~ opens,
        'values': {'s_seen_input_id': 'given.s_input_id'}}) -%}
{%- endmacro %}

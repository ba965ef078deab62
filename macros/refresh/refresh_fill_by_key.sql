{#- Fills history and hub of a key refresh from batches all of whose keys are new: there is nothing to close, to touch or to
    replace. -#}
{% macro refresh_fill_by_key(load, batches) -%}
    {%- set given = heartbeat.refresh_shape(load, load.tables.batches) | map(attribute='name') | list -%}
    {%- set of_batches = heartbeat.refresh_of_batches(batches) -%}
    {%- set rows = load.tables.batches ~ " as given where " ~ of_batches ~ " and " -%}
    {%- set replaced = none if heartbeat.refresh_is_first(load, batches[0]) else of_batches -%}
    {%- set opens = "s_record_status_code = 'N'" -%}
    {%- set is_version = opens -%}
    {%- if load.settings['deletes.when'] -%}
        {%- set is_version = "(" ~ opens ~ " or s_record_status_code = 'U' and s_deleted_flag)" -%}
    {%- endif -%}
    {%- if load.settings.history -%}
        {%- do heartbeat.refresh_fill(load, 'history', {'names': given, 'source': rows ~ is_version,
            'values': {'s_effective_from': 'given.s_update_timestamp'}}, replaced) -%}
    {%- endif -%}
    {%- do heartbeat.refresh_fill(load, 'hub', {'names': given, 'source': rows ~ opens,
        'values': {'s_seen_input_id': 'given.s_input_id'}}, replaced) -%}
{%- endmacro %}

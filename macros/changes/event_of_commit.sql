{#- One data-change event, with the fields that a producer sets; the tick that takes it in says when. -#}
{% macro event_of_commit(commit, table, tags, partition) -%}
    {%- set found = commit.get('partitions', []) | select | list -%}
    {%- set is_one = found | length == 1 and not commit.get('is_truncated') -%}
    {%- set told = {'dbt_model': model.unique_id} -%}
    {%- for key in ['operation_name', 'overwrite', 'replaced'] if commit.get(key) -%}
        {%- do told.update({key | replace('_name', ''): commit[key]}) -%}
    {%- endfor -%}
    {%- if table.table_id is defined -%}
        {%- do told.update(table_id=table.table_id) -%}
    {%- endif -%}
    {%- if partition is none -%}
        {%- do told.update(heartbeat.partition_tags([] if is_one else found, commit.get('is_truncated'))) -%}
    {%- endif -%}
    {%- set given = none if partition is none else heartbeat.partition_given(partition, table) -%}
    {%- do return({
        'table': table.name,
        'partition': found[0] if is_one and partition is none else given,
        'snapshot_id': commit.get('snapshot_id'),
        'snapshot_ts': commit.get('snapshot_ts'),
        'prev_snapshot_id': commit.get('prev_snapshot_id'),
        'table_format': table.format,
        'operation_type': commit.operation,
        'tags': dict(tags or {}, **told),
        'event_id': none if commit.get('snapshot_id') else local_md5(invocation_id ~ model.unique_id),
    }) -%}
{%- endmacro %}

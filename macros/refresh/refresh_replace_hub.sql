{#- Replaces all of the hub by rows of the archive, in one commit. A model's run gives the hub the model's columns; an
    operation keeps those that it has. -#}
{% macro refresh_replace_hub(load, from_archive) -%}
    {%- set hub = load.tables.hub -%}
    {%- if not load.is_operation -%}
        {%- set names = load.columns | map(attribute='quoted') | list + ['s_input_id'] -%}
        {%- do load.shapes.pop(hub | string, none) -%}
        {%- do run_query(create_table_as(false, hub, "select " ~ names | join(", ") ~ from_archive)) -%}
    {%- else -%}
        {%- set given = heartbeat.refresh_shape(load, load.tables.batches) | map(attribute='name') | list -%}
        {%- do run_query("insert overwrite " ~ hub ~ " select "
            ~ heartbeat.refresh_values_for(load, hub, given, 'given') ~ from_archive) -%}
    {%- endif -%}
{%- endmacro %}

{#- Replaces all of the hub by rows of the archive, in one commit. A model's run gives the hub the model's columns; an
    operation keeps those that it has, and a contract its constraints. -#}
{% macro refresh_replace_hub(load, from_archive) -%}
    {%- set hub = load.tables.hub -%}
    {%- set is_fixed = load.is_operation or load.config.get('contract', {}).enforced -%}
    {%- if load_relation(hub) is none or not is_fixed -%}
        {%- set names = load.columns | map(attribute='quoted') | list + ['s_input_id'] -%}
        {%- do heartbeat.refresh_create(load, 'hub', hub, "select " ~ names | join(", ") ~ from_archive) -%}
    {%- else -%}
        {%- set given = heartbeat.refresh_shape(load, load.tables.batches) | map(attribute='name') | list -%}
        {#- Not `insert overwrite`: another model may have told the session to leave other partitions as they are. -#}
        {%- do run_query("insert into " ~ hub ~ " replace where s_input_id >= 0 select "
            ~ heartbeat.refresh_values_for(load, hub, given, 'given') ~ from_archive) -%}
    {%- endif -%}
{%- endmacro %}

{#- Takes all batches of the archive anew, with the settings that the model has now: hub, history and archive become
    what they would be if the model had had them from its first batch on. -#}
{% macro refresh_reset(model, without=[], dry_run=false) -%}
    {%- set load = heartbeat.refresh_operation(model) -%}
    {%- for input_id in without -%}
        {%- do heartbeat.refresh_batch_of(load, input_id, ['COMPLETE', 'STAGED', 'UNLOADED', 'UNLOADING']) -%}
    {%- endfor -%}
    {%- set kept = load.batches | selectattr('state', 'in', ['COMPLETE', 'STAGED']) | rejectattr('id', 'in', without)
        | list -%}
    {%- do log(load.name ~ ": " ~ ("would take " if dry_run else "taking ") ~ kept | length ~ " batches anew as type "
        ~ load.settings.type, info=true) -%}
    {%- if not dry_run -%}
        {%- do heartbeat.refresh_replay(load, kept) -%}
    {%- endif -%}
{%- endmacro %}

{#- Processes all batches of the batch archive again, with the present settings: target table, history and batch
    archive become what they would be if the model had had these settings from its first batch on. -#}
{% macro refresh_reset(model, without=[], dry_run=false) -%}
    {%- set run = heartbeat._refresh_begin_operation(model) -%}
    {%- for input_id in without -%}
        {%- do heartbeat._refresh_find_batch(run, input_id, ['COMPLETE', 'STAGED', 'UNLOADED', 'UNLOADING']) -%}
    {%- endfor -%}
    {%- set kept = run.batches | selectattr('state', 'in', ['COMPLETE', 'STAGED']) | rejectattr('id', 'in', without)
        | list -%}
    {%- do log(run.name ~ ": " ~ ("would take " if dry_run else "taking ") ~ kept | length ~ " batches again as type "
        ~ run.settings.type, info=true) -%}
    {%- if not dry_run -%}
        {%- do heartbeat._refresh_replay(run, kept) -%}
    {%- endif -%}
{%- endmacro %}

{#- Takes batches out again: hub and history become what they would be if they had never come. -#}
{% macro refresh_unload(model, input_ids, dry_run=false) -%}
    {%- set load = heartbeat.refresh_operation(model) -%}
    {%- do heartbeat.refresh_stop_on_changed_settings(load) -%}
    {%- if load.settings.type == 'custom' -%}
        {%- do exceptions.raise_compiler_error(
            "refresh: what a batch of " ~ load.name ~ " has deleted follows from the batches before it, as its type is "
            ~ "custom: take the batch out with refresh_reset and its argument without") -%}
    {%- endif -%}
    {%- set chosen = [] -%}
    {%- for input_id in ([input_ids] if input_ids is number else input_ids) -%}
        {%- do chosen.append(heartbeat.refresh_batch_of(load, input_id, ['COMPLETE', 'STAGED', 'UNLOADING'])) -%}
    {%- endfor -%}
    {%- if load.settings.type != 'none' -%}
        {%- do heartbeat.refresh_need_archive(
            load, load.batches | selectattr('state', 'in', ['COMPLETE', 'STAGED']) | list, "an unload") -%}
    {%- endif -%}
    {%- for batch in chosen -%}
        {%- do log(load.name ~ ": " ~ ("would unload" if dry_run else "unloading") ~ " batch " ~ batch.id ~ ", "
            ~ heartbeat.refresh_reach(load, batch), info=true) -%}
    {%- endfor -%}
    {%- if not dry_run -%}
        {#- One that is only staged must not be finished first: it may be there to go because it cannot be. -#}
        {%- for state in ['STAGED', 'COMPLETE'] -%}
            {%- for batch in chosen if batch.state == state -%}
                {%- do heartbeat.refresh_record(load, [batch], 'UNLOADING') -%}
            {%- endfor -%}
            {%- do heartbeat.refresh_heal(load) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

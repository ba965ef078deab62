{#- Unloads batches: target table and history become what they would be without them. -#}
{% macro refresh_unload(model, input_ids, dry_run=false) -%}
    {%- set run = heartbeat._refresh_begin_operation(model) -%}
    {%- do heartbeat._refresh_check_unchanged_settings(run) -%}
    {%- if run.settings.type == 'custom' -%}
        {%- do exceptions.raise_compiler_error(
            "refresh: what a batch of " ~ run.name ~ " has deleted follows from the batches before it, as its type is "
            ~ "custom: take the batch out with refresh_reset and its argument without") -%}
    {%- endif -%}
    {%- set chosen = [] -%}
    {%- for input_id in ([input_ids] if input_ids is number else input_ids) -%}
        {%- do chosen.append(heartbeat._refresh_find_batch(run, input_id, ['COMPLETE', 'STAGED', 'UNLOADING'])) -%}
    {%- endfor -%}
    {%- if run.settings.type != 'none' -%}
        {%- do heartbeat._refresh_require_archive(
            run, run.batches | selectattr('state', 'in', ['COMPLETE', 'STAGED']) | list, "an unload") -%}
    {%- endif -%}
    {%- for batch in chosen -%}
        {%- do log(run.name ~ ": " ~ ("would unload" if dry_run else "unloading") ~ " batch " ~ batch.id ~ ", "
            ~ heartbeat._refresh_affected_range(run, batch), info=true) -%}
    {%- endfor -%}
    {%- if not dry_run -%}
        {#- A staged batch must not be finished first: it may be unloaded because it cannot be finished. -#}
        {%- for state in ['STAGED', 'COMPLETE'] -%}
            {%- for batch in chosen if batch.state == state -%}
                {%- do heartbeat._refresh_record_batches(run, [batch], 'UNLOADING') -%}
            {%- endfor -%}
            {%- do heartbeat._refresh_recover_batches(run) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{#- Receives unloaded batches again, as they are in the batch archive, as the newest batches. -#}
{% macro refresh_reload(model, input_ids, dry_run=false) -%}
    {%- set run = heartbeat._refresh_begin_operation(model) -%}
    {%- do heartbeat._refresh_check_unchanged_settings(run) -%}
    {%- set chosen = [] -%}
    {%- for input_id in ([input_ids] if input_ids is number else input_ids) -%}
        {%- do chosen.append(heartbeat._refresh_find_batch(run, input_id, ['UNLOADED'])) -%}
    {%- endfor -%}
    {%- do heartbeat._refresh_require_archive(run, chosen, "a reload") -%}
    {%- if not dry_run -%}
        {%- do heartbeat._refresh_recover_batches(run) -%}
    {%- endif -%}
    {%- for batch in chosen -%}
        {%- do log(run.name ~ ": " ~ ("would reload" if dry_run else "reloading") ~ " batch " ~ batch.id ~ ", "
            ~ heartbeat._refresh_affected_range(run, batch), info=true) -%}
        {%- if not dry_run -%}
            {%- do heartbeat._refresh_restage(run, batch) -%}
            {%- set fact = heartbeat._refresh_batch_facts(run)[0] -%}
            {%- do heartbeat._refresh_keep_range(run, fact, batch) -%}
            {%- do fact.update(id=run.batches[-1].id + 1, received_at=heartbeat._refresh_received_at(run)) -%}
            {%- do heartbeat._refresh_process_batches(run, [fact]) -%}
            {%- do run_query("drop table if exists " ~ run.tables.staging) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Receives batches that were unloaded once more, as they stand in the archive and as the newest batches. -#}
{% macro refresh_reload(model, input_ids, dry_run=false) -%}
    {%- set load = heartbeat.refresh_operation(model) -%}
    {%- do heartbeat.refresh_stop_on_changed_settings(load) -%}
    {%- set chosen = [] -%}
    {%- for input_id in ([input_ids] if input_ids is number else input_ids) -%}
        {%- do chosen.append(heartbeat.refresh_batch_of(load, input_id, ['UNLOADED'])) -%}
    {%- endfor -%}
    {%- do heartbeat.refresh_need_archive(load, chosen, "a reload") -%}
    {%- if not dry_run -%}
        {%- do heartbeat.refresh_heal(load) -%}
    {%- endif -%}
    {%- for batch in chosen -%}
        {%- do log(load.name ~ ": " ~ ("would reload" if dry_run else "reloading") ~ " batch " ~ batch.id ~ ", "
            ~ heartbeat.refresh_reach(load, batch), info=true) -%}
        {%- if not dry_run -%}
            {%- do heartbeat.refresh_restage(load, batch) -%}
            {%- set fact = heartbeat.refresh_batch_facts(load)[0] -%}
            {%- do heartbeat.refresh_keep_range(load, fact, batch) -%}
            {%- do fact.update(id=load.batches[-1].id + 1, received_at=heartbeat.refresh_receipt(load)) -%}
            {%- do heartbeat.refresh_take(load, [fact]) -%}
            {%- do run_query("drop table if exists " ~ load.tables.staging) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Deletes the rows of old batches from the batch archive. Target table, history and batch log stay; what needs those
    rows is refused from then on. Delta keeps the files until its own VACUUM. -#}
{% macro refresh_vacuum(model, keep_days, dry_run=false) -%}
    {%- set run = heartbeat._refresh_begin_operation(model) -%}
    {%- set outdated = heartbeat._refresh_outdated_batches(run, keep_days | int) -%}
    {%- do log(run.name ~ ": " ~ ("would remove" if dry_run else "removing") ~ " the rows of " ~ outdated | length
        ~ " batches from the archive, received more than " ~ keep_days ~ " days ago", info=true) -%}
    {%- if not dry_run -%}
        {%- do heartbeat._refresh_remove_from_archive(run, outdated) -%}
    {%- endif -%}
{%- endmacro %}

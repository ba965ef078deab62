{#- Deletes the rows of old batches from the archive. Hub, history and ledger stay; what needs those rows is refused from
    then on. Delta keeps the files until its own VACUUM. -#}
{% macro refresh_vacuum(model, keep_days, dry_run=false) -%}
    {%- set load = heartbeat.refresh_operation(model) -%}
    {%- set outdated = heartbeat.refresh_outdated(load, keep_days | int) -%}
    {%- do log(load.name ~ ": " ~ ("would remove" if dry_run else "removing") ~ " the rows of " ~ outdated | length
        ~ " batches from the archive, received more than " ~ keep_days ~ " days ago", info=true) -%}
    {%- if not dry_run -%}
        {%- do heartbeat.refresh_leave_archive(load, outdated) -%}
    {%- endif -%}
{%- endmacro %}

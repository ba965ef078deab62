{#- Finishes what a run or an operation has left between two steps; the next run of the model would do the same. -#}
{% macro refresh_recover(model, dry_run=false) -%}
    {%- set run = heartbeat._refresh_begin_operation(model) -%}
    {%- for batch in run.batches if batch.state in ('STAGED', 'UNLOADING') -%}
        {%- do log(run.name ~ ": batch " ~ batch.id ~ " is " ~ batch.state, info=true) -%}
    {%- endfor -%}
    {%- if not dry_run -%}
        {%- do heartbeat._refresh_check_unchanged_settings(run) -%}
        {%- do heartbeat._refresh_recover_batches(run) -%}
    {%- endif -%}
{%- endmacro %}

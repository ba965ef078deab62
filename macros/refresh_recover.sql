{#- Finishes what a run or an operation has left between two steps; the next run of the model would do the same. -#}
{% macro refresh_recover(model, dry_run=false) -%}
    {%- set load = heartbeat.refresh_operation(model) -%}
    {%- for batch in load.batches if batch.state in ('STAGED', 'UNLOADING') -%}
        {%- do log(load.name ~ ": batch " ~ batch.id ~ " is " ~ batch.state, info=true) -%}
    {%- endfor -%}
    {%- if not dry_run -%}
        {%- do heartbeat.refresh_stop_on_changed_settings(load) -%}
        {%- do heartbeat.refresh_heal(load) -%}
    {%- endif -%}
{%- endmacro %}

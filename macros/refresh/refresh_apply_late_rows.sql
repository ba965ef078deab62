{#- Gives rows of a batch that came late their place in the history, if there are any. -#}
{% macro refresh_apply_late_rows(load, batch) -%}
    {%- set late = heartbeat.refresh_late_keys(load, batch) -%}
    {%- if heartbeat.rows_of("select 1 from (" ~ late ~ ") limit 1") -%}
        {%- set live = load.batches | selectattr('state', 'equalto', 'COMPLETE') | rejectattr('id', 'equalto', batch.id) | list -%}
        {%- do heartbeat.refresh_fold_keys(load, late, live + [batch], ['history']) -%}
    {%- endif -%}
{%- endmacro %}

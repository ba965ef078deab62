{#- The keys that a batch has to do with, as a query: those of its rows, and those that it has deleted because it lacked
    them, which only the history knows when a batch before it was unloaded. -#}
{% macro refresh_keys_of_batch(load, batch) -%}
    select distinct {{ heartbeat.refresh_names(load.settings.key) }}
    from {{ load.tables.batches }}
    where s_input_id = {{ batch.id }} and s_record_status_code <> 'R'
    {%- if load.settings['deletes.complete'] %}
    union
    select {{ heartbeat.refresh_names(load.settings.key) }} from {{ load.tables.history }} where s_input_id = {{ batch.id }}
    {%- endif %}
{%- endmacro %}

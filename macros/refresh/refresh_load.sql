{#- All that the steps of a refresh know: the model's settings and tables, what the ledger says of each batch and its last
    step, and the columns of the model, once its rows are staged. -#}
{% macro refresh_load(node, hub) -%}
    {%- set load = {
        'name': node.name,
        'config': node.config,
        'settings': heartbeat.refresh_settings(node),
        'tables': heartbeat.refresh_tables(hub),
        'columns': [],
        'shapes': {},
        'is_operation': false,
        'is_replay': false,
        'are_tables_ready': false,
    } -%}
    {%- do heartbeat.refresh_make_ledger(load.tables.ledger) -%}
    {%- set batches = heartbeat.refresh_ledger_batches(load.tables.ledger) -%}
    {%- do load.update(batches=batches, step=batches | map(attribute='step') | max if batches else 0) -%}
    {%- do return(load) -%}
{%- endmacro %}

{#- The tables of a refresh model: the hub, which has the model's name, and those beside it. -#}
{% macro refresh_tables(hub) -%}
    {%- set tables = {'hub': hub.incorporate(type='table')} -%}
    {%- for name, ending in {
        'history': '_history', 'batches': '_batches', 'ledger': '_ledger', 'staging': '__rf_' ~ invocation_id[:8],
        'versions': '__rf_' ~ invocation_id[:8] ~ '_versions', 'metrics': '_metrics'
    }.items() -%}
        {%- do tables.update({name: api.Relation.create(
            database=hub.database, schema=hub.schema, identifier=hub.identifier ~ ending,
            type='view' if name == 'metrics' else 'table')}) -%}
    {%- endfor -%}
    {%- do return(tables) -%}
{%- endmacro %}

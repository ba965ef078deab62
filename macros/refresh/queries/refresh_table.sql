{#- A table beside the target table of a refresh model, for a query that refers to the model: `history`, `batches`,
    `ledger` or `metrics`. -#}
{% macro refresh_table(hub, name) -%}
    {%- set legal = ['history', 'batches', 'ledger', 'metrics'] -%}
    {%- if name not in legal -%}
        {%- do exceptions.raise_compiler_error(
            "refresh_table: name is " ~ name ~ ", but must be one of " ~ legal | join(', ')) -%}
    {%- endif -%}
    {#- A dbt unit test has rows for the referenced model, and no table beside it. -#}
    {%- if not execute or model.resource_type == 'unit_test' -%}
        {%- do return(hub) -%}
    {%- endif -%}
    {%- do return(heartbeat._refresh_tables(hub)[name]) -%}
{%- endmacro %}

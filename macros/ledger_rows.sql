{#- A typed select without rows, rendered from the contract of the model: one schema, one place. -#}
{% macro ledger_rows() -%}
    select
    {%- for column in model.columns.values() %}
        cast(null as {{ column.data_type }}) as {{ adapter.quote(column.name) if column.quote else column.name }}{{ "," if not loop.last }}
    {%- endfor %}
    where 1 = 0
{%- endmacro %}

{#- A typed select without rows, rendered from the contract of the model: one schema, one place. -#}
{% macro without_rows() -%}
    select
    {%- for column in model.columns.values() %}
        cast(null as {{ column.data_type }}) as {{ adapter.quote(column.name) if column.quote else column.name }}{{ "," if not loop.last }}
    {%- endfor %}
    where 1 = 0
{%- endmacro %}

{#- True for ledger rows that are not yet in the current-state tables: those after the tick that the variable names. A
    literal, so that Delta skips every older file by its statistics. -#}
{% macro is_in_tail(relation, after='folded_through') -%}
    {{ relation }}.tick_number > {{ var(after) | int }}
{%- endmacro %}

{#- A typed select without rows, rendered from the contract of the model: one schema, one place. -#}
{% macro without_rows() -%}
    select
    {%- for column in model.columns.values() %}
        cast(null as {{ column.data_type }}) as {{ adapter.quote(column.name) if column.quote else column.name }}{{ "," if not loop.last }}
    {%- endfor %}
    where 1 = 0
{%- endmacro %}

{#- True for ledger rows that are not yet in the current-state tables. -#}
{% macro is_in_tail(relation) -%}
    {{ relation }}.tick_number > (select folded_through from {{ ref('int_compaction') }})
{%- endmacro %}

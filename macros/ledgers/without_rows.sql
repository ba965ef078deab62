{#- A typed select without rows, rendered from the contract of the model: one schema, one place. -#}
{% macro without_rows() -%}
    select
    {%- for column in model.columns.values() %}
        cast(null as {{ column.data_type }}) as {{ adapter.quote(column.name) if column.quote else column.name }}{{ "," if not loop.last }}
    {%- endfor %}
    where 1 = 0
{%- endmacro %}

{#- The tick that the variable names; where that names none, as in a build of everything, the one that the newest tick
    has recorded. Any earlier one gives the same answers, but has every query read more of the ledgers. -#}
{% macro compacted_through(ledger_ticks) -%}
    {%- set given = var('folded_through') | int -%}
    {%- if given < 0 and execute and load_relation(ledger_ticks) is not none -%}
        {%- set newest = run_query('select max_by(folded_through, tick_number) from ' ~ ledger_ticks) -%}
        {{- return(given if newest[0][0] is none else newest[0][0]) -}}
    {%- endif -%}
    {{- return(given) -}}
{%- endmacro %}

{#- True for ledger rows that are not yet in the current-state tables. -#}
{% macro is_in_tail(relation) -%}
    {{ relation }}.tick_number > (select folded_through from {{ ref('int_compaction') }})
{%- endmacro %}

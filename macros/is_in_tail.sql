{#- True for ledger rows that are not yet in the current-state tables: those after the tick that the
    variable names. A literal, so that Delta skips every older file by its statistics. -#}
{% macro is_in_tail(relation, after='folded_through') -%}
    {{ relation }}.tick_number > {{ var(after) | int }}
{%- endmacro %}

{#- True for ledger rows that are not yet in the current-state tables. A literal, so that Delta
    skips every older file by its statistics. -#}
{% macro is_in_tail(relation) -%}
    {{ relation }}.tick_number > {{ var('folded_through') | int }}
{%- endmacro %}

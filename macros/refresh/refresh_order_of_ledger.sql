{#- What orders the rows of one batch in the ledger, as SQL, given the columns that the ledger has. The step decides, which each
    commit of the ledger counts up: a clock does not, as each run has that of its own driver. Rows of before there were steps come
    first, in the order of a batch's life, and only among alike by their clock. -#}
{% macro refresh_order_of_ledger(there) -%}
    struct({{ "coalesce(step, 0)" if 'step' in there else "0" }},
        case state when 'STAGED' then 0 when 'UNLOADING' then 2 when 'UNLOADED' then 3 else 1 end, recorded_at)
{%- endmacro %}

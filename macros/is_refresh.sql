{#- Whether the model is materialized as refresh and its table is there: what `is_incremental` is to others. -#}
{% macro is_refresh() -%}
    {%- if not execute -%}
        {%- do return(false) -%}
    {%- endif -%}
    {%- do return(
        model.config.materialized == 'refresh' and load_relation(this) is not none and not should_full_refresh()) -%}
{%- endmacro %}

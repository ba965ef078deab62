{#- Whether the model is materialized as refresh and its table exists: the counterpart of `is_incremental`. -#}
{% macro is_refresh() -%}
    {%- if not execute -%}
        {%- do return(false) -%}
    {%- endif -%}
    {%- do return(
        model.config.materialized == 'refresh' and load_relation(this) is not none and not should_full_refresh()) -%}
{%- endmacro %}

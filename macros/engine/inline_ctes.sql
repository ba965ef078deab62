{#- A view keeps the setting with which it was created. For other SQL the setting would change which of two CTEs of
    one name is meant, so it is reset when dbt ends. -#}
{% macro inline_ctes(is_wanted) -%}
    {%- if target.type == 'spark' and target.profile_name == 'heartbeat' -%}
        {%- if is_wanted -%}
            set spark.sql.legacy.ctePrecedencePolicy = LEGACY
        {%- else -%}
            reset spark.sql.legacy.ctePrecedencePolicy
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

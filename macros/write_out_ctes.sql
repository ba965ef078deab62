{#- A view keeps the setting that it was made with. For anybody's own SQL it would change which of two
    CTEs of one name is meant, so it is taken back when dbt ends. -#}
{% macro write_out_ctes(is_wanted) -%}
    {%- if target.type == 'spark' and target.profile_name == 'heartbeat' -%}
        {%- if is_wanted -%}
            set spark.sql.legacy.ctePrecedencePolicy = LEGACY
        {%- else -%}
            reset spark.sql.legacy.ctePrecedencePolicy
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- Deletes rows that left the controls. Renders nothing, so nothing runs, in ticks whose controls are unchanged. -#}
{% macro delete_rows_not_in(relation, keys) -%}
    {%- if execute and is_incremental() and var('controls_changed') -%}
        merge into {{ this }} as published
        using {{ relation }} as kept
            on
            {%- for key in keys %}
                {{ "and " if not loop.first }}published.{{ key }} = kept.{{ key }}
            {%- endfor %}
        when not matched by source then delete
    {%- endif -%}
{%- endmacro %}

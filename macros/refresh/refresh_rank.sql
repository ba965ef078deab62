{#- The place of a row among those of its key in one batch, as SQL: the first of them counts. -#}
{% macro refresh_rank(settings) -%}
    row_number() over (
        partition by s_input_id, s_is_rejected, {{ heartbeat.refresh_names(settings.key) }}
        order by s_update_timestamp desc, s_deleted_flag desc,
        {%- for column in settings.tie_breaker %} {{ adapter.quote(column) }} desc, {%- endfor %} s_row_num desc
    )
{%- endmacro %}

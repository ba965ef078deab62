{#- The place of a row among those of its key in one batch, as SQL: the first of them counts. Rows of one instant are told apart by the
    values of all columns, in their order, so that the same rows give the same answer however a table or a shuffle orders them; their
    number only tells apart rows that are equal in everything. -#}
{% macro refresh_rank(load) -%}
    row_number() over (
        partition by s_input_id, s_is_rejected, {{ heartbeat.refresh_names(load.settings.key) }}
        order by s_update_timestamp desc, s_deleted_flag desc,
        {%- for column in load.settings.tie_breaker %} {{ adapter.quote(column) }} desc, {%- endfor %}
        {%- for column in load.columns if column.name not in load.settings.key %}
            {{- " " ~ heartbeat.refresh_canonical(column.quoted, column.type) | trim }} desc, {%- endfor %} s_row_num desc
    )
{%- endmacro %}

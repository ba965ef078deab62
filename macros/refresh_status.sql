{#- Prints what became of each batch of a refresh model, newest last. -#}
{% macro refresh_status(model) -%}
    {%- set load = heartbeat.refresh_operation(model) -%}
    {%- set query -%}
        select
            s_input_id, state, date_format(received_at, 'yyyy-MM-dd HH:mm:ss'), record_count, effective_record_count,
            array_join(transform(array_sort(map_entries(code_counts)), each -> concat(each.key, ' ', each.value)), ', '),
            message
        from {{ load.tables.metrics }}
        order by s_input_id
    {%- endset -%}
    {%- for id, state, received_at, count, effective, codes, message in heartbeat.rows_of(query, 7) -%}
        {%- do log(load.name ~ " batch " ~ id ~ " of " ~ received_at ~ ": " ~ state ~ ", " ~ count ~ " rows, "
            ~ effective ~ " of them in the hub" ~ ("; " ~ codes if codes) ~ ("; " ~ message if message), info=true) -%}
    {%- endfor -%}
{%- endmacro %}

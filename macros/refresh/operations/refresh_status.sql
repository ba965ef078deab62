{#- Prints the state of each batch of a refresh model, newest last. -#}
{% macro refresh_status(model) -%}
    {%- set run = heartbeat._refresh_begin_operation(model) -%}
    {%- do heartbeat._refresh_create_metrics(run) -%}
    {%- set counts = "array_join(transform(array_sort(map_entries({})), each -> concat(each.key, ' ', each.value)), ', ')" -%}
    {%- set query -%}
        select
            s_input_id, state, date_format(received_at, 'yyyy-MM-dd HH:mm:ss'), record_count, effective_record_count,
            {{ counts.format("code_counts") }},
            {{ counts.format("hub_code_counts") if run.settings.type == 'key' else "null" }},
            message
        from {{ run.tables.metrics }}
        order by s_input_id
    {%- endset -%}
    {%- for id, state, received_at, count, effective, codes, hub_codes, message in heartbeat._query_rows(query, 8) -%}
        {%- do log(run.name ~ " batch " ~ id ~ " of " ~ received_at ~ ": " ~ state ~ ", " ~ count ~ " rows, "
            ~ effective ~ " of them in the hub" ~ ("; " ~ codes if codes)
            ~ ("; the hub then: " ~ hub_codes if hub_codes) ~ ("; " ~ message if message), info=true) -%}
    {%- endfor -%}
{%- endmacro %}

{#- Stages the rows of a batch from the archive, as the model gave them. -#}
{% macro refresh_restage(load, batch) -%}
    {%- set query -%}
        select
            {% for column in load.columns %}{{ column.quoted }}, {% endfor %}
            cast({{ heartbeat.seed_literal(batch.batch, 'string') }} as string) as s_batch,
            s_row_num
        from {{ load.tables.batches }}
        where s_input_id = {{ batch.id }} and s_row_num is not null
    {%- endset -%}
    {%- do heartbeat.refresh_make_staging(load, query) -%}
{%- endmacro %}

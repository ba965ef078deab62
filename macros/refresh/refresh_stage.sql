{#- Works out the model once, into a table of this run alone, and learns its columns: a view would be worked out
    by each statement that reads it, and one that reads the hub would change meanwhile. -#}
{% macro refresh_stage(load, query) -%}
    {%- do heartbeat.refresh_check_hub(load) -%}
    {%- if load.config.get('contract', {}).enforced -%}
        {%- do get_assert_columns_equivalent(query) -%}
    {%- endif -%}
    {%- set batch_by = load.settings.batch_by -%}
    {%- set of_batch = "cast(" ~ adapter.quote(batch_by) ~ " as string)" if batch_by else "cast(null as string)" -%}
    {%- set rows -%}
        select given.*, {{ of_batch }} as s_batch, monotonically_increasing_id() as s_row_num
        from (
            {{ query }}
        ) as given
    {%- endset -%}
    {%- do heartbeat.refresh_make_staging(load, heartbeat.refresh_with_kept_columns(load, rows)) -%}
    {%- do load.update(columns=heartbeat.refresh_columns_of(load, load.tables.staging)) -%}
    {%- do heartbeat.refresh_check_columns(load) -%}
    {%- do heartbeat.refresh_check_types(load) -%}
{%- endmacro %}

{#- Ends a run over a part of the rows: missing rows would count as deleted, and the part as a batch. -#}
{% macro _refresh_refuse_samples(node) -%}
    {%- if flags.EMPTY or flags.SAMPLE -%}
        {%- do exceptions.raise_compiler_error(
            node.name ~ ": a refresh takes what it is given for all of a batch, so it does not run with "
            ~ ("--empty" if flags.EMPTY else "--sample") ~ ": leave the model out with --exclude " ~ node.name) -%}
    {%- endif -%}
{%- endmacro %}

{#- Rejects a model whose query reads from a watermark that another run has moved since: its rows would be duplicates. -#}
{% macro _refresh_check_read_on(run, query) -%}
    {%- set read = modules.re.findall("batch log at step ([0-9]+)", query) | map('int') | list -%}
    {%- if read and read | min < run.step -%}
        {%- do exceptions.raise_compiler_error(
            run.name ~ ": another run has written to " ~ run.tables.ledger ~ " since refresh_watermark read it for this run: run "
            ~ "the model again") -%}
    {%- endif -%}
{%- endmacro %}

{#- Runs the model's query once, into a table of this run, and reads its columns: a view would run again in each
    statement that reads it, and one that reads the target table would change meanwhile. -#}
{% macro _refresh_stage(run, query) -%}
    {%- do heartbeat._refresh_check_target(run) -%}
    {%- if run.config.get('contract', {}).enforced -%}
        {%- do get_assert_columns_equivalent(query) -%}
    {%- endif -%}
    {%- set batch_by = run.settings.batch_by -%}
    {%- set of_batch = "cast(" ~ adapter.quote(batch_by) ~ " as string)" if batch_by else "cast(null as string)" -%}
    {%- set rows -%}
        select given.*, {{ of_batch }} as s_batch, monotonically_increasing_id() as s_row_num
        from (
            {{ query }}
        ) as given
    {%- endset -%}
    {%- do heartbeat._refresh_create_staging(run, heartbeat._refresh_with_kept_columns(run, rows)) -%}
    {%- do run.update(columns=heartbeat._refresh_model_columns(run, run.tables.staging)) -%}
    {%- do heartbeat._refresh_check_columns(run) -%}
    {%- do heartbeat._refresh_check_types(run) -%}
{%- endmacro %}

{#- Stages the rows of a batch from the batch archive, as the model gave them. -#}
{% macro _refresh_restage(run, batch) -%}
    {%- set query -%}
        select
            {% for column in run.columns %}{{ column.quoted }}, {% endfor %}
            cast({{ heartbeat._sql_literal(batch.batch, 'string') }} as string) as s_batch,
            s_row_num
        from {{ run.tables.batches }}
        where s_input_id = {{ batch.id }} and s_row_num is not null
    {%- endset -%}
    {%- do heartbeat._refresh_create_staging(run, query) -%}
{%- endmacro %}

{#- Writes rows to one of the tables of this run alone, `staging` or `versions`. -#}
{% macro _refresh_create_staging(run, query, name='staging') -%}
    {%- do run.shapes.pop(run.tables[name] | string, none) -%}
    {%- do run_query("create or replace table " ~ run.tables[name] ~ " using delta tblproperties ('delta.dataSkippingNumIndexedCols' = '0') as " ~ query) -%}
{%- endmacro %}

{#- The staged rows of batches with their system columns, as a query; without a key the only code is R. -#}
{% macro _refresh_staged_rows(run, batches) -%}
    select
        staged.*,
        if(s_is_rejected, 'R', cast(null as string)) as s_record_status_code
    from (
        select
            *,
            {{ heartbeat._refresh_derived_columns(run) }},
            cast(case
                {%- for batch in batches %}
                when s_batch <=> {{ heartbeat._sql_literal(batch.batch, 'string') }} then {{ batch.id }}
                {%- endfor %}
            end as bigint) as s_input_id
        from {{ run.tables.staging }}
    ) as staged
    where s_input_id is not null
{%- endmacro %}

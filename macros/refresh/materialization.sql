{#- Applies batches of rows to a table by one of six strategies (docs/how-to/refresh_models.md). Batches that an earlier run left
    between two steps are finished first; then new ones are processed in order. -#}
{% materialization refresh, default %}
    {%- do heartbeat._refresh_refuse_samples(model) -%}
    {{ run_hooks(pre_hooks) }}

    {%- set run = heartbeat._refresh_begin(model, this) -%}
    {%- do heartbeat._refresh_check_read_on(run, compiled_code) -%}
    {%- if load_relation(run.tables.batches) is not none -%}
        {%- do run.update(columns=heartbeat._refresh_model_columns(run, run.tables.batches)) -%}
    {%- endif -%}
    {%- if should_full_refresh() and run.columns -%}
        {%- do heartbeat._refresh_replay(run, run.batches | selectattr('state', 'in', ['COMPLETE', 'STAGED']) | list) -%}
    {%- else -%}
        {%- do heartbeat._refresh_check_unchanged_settings(run) -%}
        {%- do heartbeat._refresh_recover_batches(run) -%}
    {%- endif -%}
    {%- do heartbeat._refresh_stage(run, compiled_code) -%}
    {%- set pending = heartbeat._refresh_pending_batches(run) -%}
    {%- do heartbeat._refresh_process_batches(run, pending) -%}
    {%- if load_relation(run.tables.hub) is none -%}
        {%- do heartbeat._refresh_create_tables(run) -%}
    {%- endif -%}
    {%- do heartbeat._refresh_create_metrics(run) -%}
    {%- do run_query("drop table if exists " ~ run.tables.staging) -%}
    {%- if run.settings.archive_days is not none -%}
        {%- do heartbeat._refresh_remove_from_archive(run, heartbeat._refresh_outdated_batches(run, run.settings.archive_days)) -%}
    {%- endif -%}
    {%- do store_raw_result(name='main', message=heartbeat._refresh_summary(pending), code='OK', rows_affected=none) -%}

    {%- set relations = [run.tables.hub, run.tables.batches, run.tables.ledger, run.tables.metrics] -%}
    {%- if run.settings.history -%}
        {%- do relations.append(run.tables.history) -%}
    {%- endif -%}
    {%- for relation in relations -%}
        {%- do apply_grants(relation, config.get('grants'), should_revoke=true) -%}
    {%- endfor -%}
    {%- do persist_docs(run.tables.hub, model) -%}

    {{ run_hooks(post_hooks) }}
    {{ return({'relations': relations}) }}
{% endmaterialization %}

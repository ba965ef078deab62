{#- Brings batches of rows into a table by one of six strategies (docs/how-to/refresh_models.md). Batches that a run before has left
    between two steps are finished first; then those that are new are taken, one after the other. -#}
{% materialization refresh, default %}
    {%- do heartbeat.refresh_refuse_samples(model) -%}
    {{ run_hooks(pre_hooks) }}

    {%- set load = heartbeat.refresh_load(model, this) -%}
    {%- do heartbeat.refresh_check_read_on(load, compiled_code) -%}
    {%- if load_relation(load.tables.batches) is not none -%}
        {%- do load.update(columns=heartbeat.refresh_columns_of(load, load.tables.batches)) -%}
    {%- endif -%}
    {%- if should_full_refresh() and load.columns -%}
        {%- do heartbeat.refresh_replay(load, load.batches | selectattr('state', 'in', ['COMPLETE', 'STAGED']) | list) -%}
    {%- else -%}
        {%- do heartbeat.refresh_stop_on_changed_settings(load) -%}
        {%- do heartbeat.refresh_heal(load) -%}
    {%- endif -%}
    {%- do heartbeat.refresh_stage(load, compiled_code) -%}
    {%- set pending = heartbeat.refresh_pending(load) -%}
    {%- do heartbeat.refresh_take(load, pending) -%}
    {%- if load_relation(load.tables.hub) is none -%}
        {%- do heartbeat.refresh_make_tables(load) -%}
    {%- endif -%}
    {%- do heartbeat.refresh_make_metrics(load) -%}
    {%- do run_query("drop table if exists " ~ load.tables.staging) -%}
    {%- if load.settings.archive_days is not none -%}
        {%- do heartbeat.refresh_leave_archive(load, heartbeat.refresh_outdated(load, load.settings.archive_days)) -%}
    {%- endif -%}
    {%- do store_raw_result(name='main', message=heartbeat.refresh_summary(pending), code='OK', rows_affected=none) -%}

    {%- set relations = [load.tables.hub, load.tables.batches, load.tables.ledger, load.tables.metrics] -%}
    {%- if load.settings.history -%}
        {%- do relations.append(load.tables.history) -%}
    {%- endif -%}
    {%- for relation in relations -%}
        {%- do apply_grants(relation, config.get('grants'), should_revoke=true) -%}
    {%- endfor -%}
    {%- do persist_docs(load.tables.hub, model) -%}

    {{ run_hooks(post_hooks) }}
    {{ return({'relations': relations}) }}
{% endmaterialization %}

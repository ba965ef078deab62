{#- Works out hub and history anew for all keys of a batch from the other batches in the archive, and replaces them, one
    commit each. -#}
{% macro refresh_fold_keys(load, batch, live) -%}
    {%- set settings = load.settings -%}
    {%- set tables = load.tables -%}
    {%- set affected -%}
        select distinct {{ heartbeat.refresh_names(settings.key) }} from {{ tables.batches }}
        where s_input_id = {{ batch.id }} and s_record_status_code <> 'R'
    {%- endset -%}
    {%- do heartbeat.refresh_make_staging(
        load, heartbeat.refresh_versions(load, affected, live | map(attribute='id') | join(", ") or "0")) -%}
    {%- set is_current = "staged.s_effective_to is null and not staged.s_deleted_flag" -%}
    {%- do heartbeat.refresh_exchange(load, tables.history, affected, 'true', {}) -%}
    {%- do heartbeat.refresh_exchange(load, tables.hub, affected, is_current, {'s_update_timestamp': 's_touched_at'}) -%}
    {%- do run_query("drop table if exists " ~ tables.staging) -%}
{%- endmacro %}

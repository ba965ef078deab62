{#- Takes batches of the archive anew into tables beside the real ones, then puts those in their place. A process that
    dies meanwhile leaves the archive whole, from which the next try begins again. -#}
{% macro refresh_replay(load, batches) -%}
    {%- do heartbeat.refresh_need_archive(load, batches, "a reset") -%}
    {%- set beside = dict(load, batches=[], is_operation=true, is_replay=true, are_tables_ready=false, tables=dict(load.tables)) -%}
    {%- for name in ['hub', 'history', 'batches', 'ledger'] -%}
        {%- set place = load.tables[name] -%}
        {%- set other = place.incorporate(path={'identifier': place.identifier ~ '__rf_new'}) -%}
        {%- do run_query("drop table if exists " ~ other) -%}
        {%- do adapter.cache_dropped(other) -%}
        {%- do beside.tables.update({name: other}) -%}
    {%- endfor -%}
    {%- do heartbeat.refresh_make_ledger(beside.tables.ledger) -%}
    {%- do beside.update(batches=[], step=0) -%}
    {%- for batch in batches -%}
        {%- do heartbeat.refresh_restage(load, batch) -%}
        {%- do heartbeat.refresh_check_columns(load) -%}
        {%- set fact = heartbeat.refresh_batch_facts(load)[0] -%}
        {%- do heartbeat.refresh_keep_range(load, fact, batch) -%}
        {%- do fact.update(id=batch.id, received_at=batch.received_at) -%}
        {%- do heartbeat.refresh_take(beside, [fact]) -%}
    {%- endfor -%}
    {%- do heartbeat.refresh_make_tables(beside) -%}
    {%- do heartbeat.refresh_keep_left_out(
        load, beside, beside.batches | selectattr('state', 'equalto', 'COMPLETE') | list) -%}
    {%- do heartbeat.refresh_change_places(load, beside) -%}
    {%- do heartbeat.refresh_make_metrics(load) -%}
    {%- for batch in load.batches if batch.state in ('COMPLETE', 'STAGED', 'UNLOADING') -%}
        {%- set fact = (beside.batches | selectattr('id', 'equalto', batch.id) | list or [batch])[0] -%}
        {%- set state = fact.state if batch in batches else 'UNLOADED' -%}
        {%- do batch.update(fact) -%}
        {%- do heartbeat.refresh_record(load, [batch], state) -%}
    {%- endfor -%}
    {%- do run_query("drop table if exists " ~ load.tables.staging) -%}
{%- endmacro %}

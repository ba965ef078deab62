{#- Unloads one batch from target table and history, and records it in the batch log. -#}
{% macro _refresh_unload_batch(run, batch) -%}
    {%- set settings = run.settings -%}
    {%- set tables = run.tables -%}
    {%- set live = run.batches | selectattr('state', 'equalto', 'COMPLETE') | rejectattr('id', 'equalto', batch.id) | list -%}
    {%- if load_relation(tables.hub) is none -%}
        {#- It is the first batch, and was never applied: the next one writes the history again. -#}
        {%- do log(run.name ~ ": batch " ~ batch.id ~ " has not reached the hub", info=true) -%}
    {%- elif settings.type == 'key' -%}
        {%- do heartbeat._refresh_rebuild_keys(run, heartbeat._refresh_keys_of_batch(run, batch), live,
            ['history', 'hub'] if settings.history else ['hub']) -%}
        {%- do heartbeat._refresh_count_target(run, [batch]) -%}
    {%- elif settings.column and batch.range_from is not none -%}
        {%- do heartbeat._refresh_restore_range(run, batch, live) -%}
    {%- elif settings.type == 'full' -%}
        {%- if settings.history -%}
            {%- do run_query("delete from " ~ tables.history ~ " where s_input_id = " ~ batch.id) -%}
        {%- endif -%}
        {%- set newest = {'id': 0, 'range_to': none} -%}
        {%- for other in live if not settings.extracted_at or newest.range_to is none
            or other.range_to | int >= newest.range_to | int -%}
            {%- do newest.update(other) -%}
        {%- endfor -%}
        {%- if not heartbeat._query_rows("select 1 from " ~ tables.hub ~ " where s_input_id = " ~ newest.id ~ " limit 1") -%}
            {%- do heartbeat._refresh_replace_target(
                run, " from " ~ tables.batches ~ " as given where s_input_id = " ~ newest.id) -%}
        {%- endif -%}
    {%- else -%}
        {%- do run_query("delete from " ~ tables.hub ~ " where s_input_id = " ~ batch.id) -%}
    {%- endif -%}
    {%- do heartbeat._refresh_record_batches(run, [batch], 'UNLOADED') -%}
{%- endmacro %}

{#- Processes batches of the batch archive again into tables beside the real ones, then swaps these in. If the process
    dies meanwhile, the batch archive is complete, and the next attempt starts over. -#}
{% macro _refresh_replay(run, batches) -%}
    {%- do heartbeat._refresh_require_archive(run, batches, "a reset") -%}
    {%- set beside = dict(run, tables=dict(run.tables), batches=[], step=0, is_operation=true, is_replay=true, are_tables_ready=false) -%}
    {%- for name in ['hub', 'history', 'batches', 'ledger'] -%}
        {%- set place = run.tables[name] -%}
        {%- set other = place.incorporate(path={'identifier': place.identifier ~ '__rf_new'}) -%}
        {%- do run_query("drop table if exists " ~ other) -%}
        {%- do adapter.cache_dropped(other) -%}
        {%- do beside.tables.update({name: other}) -%}
    {%- endfor -%}
    {%- do heartbeat._refresh_create_batch_log(beside.tables.ledger) -%}
    {%- for batch in batches -%}
        {%- do heartbeat._refresh_restage(run, batch) -%}
        {%- do heartbeat._refresh_check_columns(run) -%}
        {%- set fact = heartbeat._refresh_batch_facts(run)[0] -%}
        {%- do heartbeat._refresh_keep_range(run, fact, batch) -%}
        {%- do fact.update(id=batch.id, received_at=batch.received_at) -%}
        {%- do heartbeat._refresh_process_batches(beside, [fact]) -%}
    {%- endfor -%}
    {%- do heartbeat._refresh_create_tables(beside) -%}
    {%- do heartbeat._refresh_archive_left_out(
        run, beside, beside.batches | selectattr('state', 'equalto', 'COMPLETE') | list) -%}
    {%- do heartbeat._refresh_swap_tables(run, beside) -%}
    {%- do heartbeat._refresh_create_metrics(run) -%}
    {%- for batch in run.batches if batch.state in ('COMPLETE', 'STAGED', 'UNLOADING') -%}
        {%- set fact = (beside.batches | selectattr('id', 'equalto', batch.id) | list or [batch])[0] -%}
        {%- set state = fact.state if batch in batches else 'UNLOADED' -%}
        {%- do batch.update(fact) -%}
        {%- do heartbeat._refresh_record_batches(run, [batch], state) -%}
    {%- endfor -%}
    {%- do run_query("drop table if exists " ~ run.tables.staging) -%}
{%- endmacro %}

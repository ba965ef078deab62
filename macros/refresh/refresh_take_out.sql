{#- Takes one batch out of hub and history, and says so in the ledger. -#}
{% macro refresh_take_out(load, batch) -%}
    {%- set settings = load.settings -%}
    {%- set tables = load.tables -%}
    {%- set live = load.batches | selectattr('state', 'equalto', 'COMPLETE') | rejectattr('id', 'equalto', batch.id) | list -%}
    {%- if load_relation(tables.hub) is none -%}
        {#- It is the first one, and has not come so far: the next to come writes the history anew. -#}
        {%- do log(load.name ~ ": batch " ~ batch.id ~ " has not reached the hub", info=true) -%}
    {%- elif settings.type == 'key' -%}
        {%- do heartbeat.refresh_fold_keys(load, heartbeat.refresh_keys_of_batch(load, batch), live,
            ['history', 'hub'] if settings.history else ['hub']) -%}
        {%- do heartbeat.refresh_count_hub(load, [batch]) -%}
    {%- elif settings.column and batch.range_from is not none -%}
        {%- do heartbeat.refresh_uncover_range(load, batch, live) -%}
    {%- elif settings.type == 'full' -%}
        {%- if settings.history -%}
            {%- do run_query("delete from " ~ tables.history ~ " where s_input_id = " ~ batch.id) -%}
        {%- endif -%}
        {%- set newest = {'id': 0, 'range_to': none} -%}
        {%- for other in live if not settings.extracted_at or newest.range_to is none
            or other.range_to | int >= newest.range_to | int -%}
            {%- do newest.update(other) -%}
        {%- endfor -%}
        {%- if not heartbeat.rows_of("select 1 from " ~ tables.hub ~ " where s_input_id = " ~ newest.id ~ " limit 1") -%}
            {%- do heartbeat.refresh_replace_hub(
                load, " from " ~ tables.batches ~ " as given where s_input_id = " ~ newest.id) -%}
        {%- endif -%}
    {%- else -%}
        {%- do run_query("delete from " ~ tables.hub ~ " where s_input_id = " ~ batch.id) -%}
    {%- endif -%}
    {%- do heartbeat.refresh_record(load, [batch], 'UNLOADED') -%}
{%- endmacro %}

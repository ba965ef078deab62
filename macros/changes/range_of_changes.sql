{#- From which snapshot to which the changes lead, and why they are not told one by one, if so. No first end:
    all rows are new. -#}
{% macro range_of_changes(relation, table, given) -%}
    {%- set since = var('heartbeat_from_snapshot', none) -%}
    {%- set until = var('heartbeat_to_snapshot', none) -%}
    {%- if model.config.materialized == 'refresh' -%}
        {#- Built anew, it takes the batches that came before from its own archive. -#}
        {%- set is_built_whole = load_relation(this) is none -%}
    {%- else -%}
        {%- set is_built_whole = model.config.materialized == 'incremental' and not is_incremental() -%}
    {%- endif -%}
    {%- set events = heartbeat.handed_events(given) -%}
    {%- if given is none and until is not none -%}
        {%- set range = {'since': since, 'until': until} -%}
    {%- elif events is not none -%}
        {%- set range = heartbeat.chain_of_events(heartbeat.events_of_table(events, table), table) -%}
    {%- elif is_built_whole or flags.WHICH not in ('run', 'build', 'retry') -%}
        {%- set range = {'since': none, 'until': none} -%}
    {%- else -%}
        {%- do exceptions.raise_compiler_error(
            "changed_rows: this run was handed no events, so nobody knows which rows of " ~ table.name ~ " it has "
            ~ "not seen: let Heartbeat start it, set the variable heartbeat_events (or heartbeat_from_snapshot and "
            ~ "heartbeat_to_snapshot), or build the model anew with --full-refresh") -%}
    {%- endif -%}
    {%- if is_built_whole -%}
        {%- do return({'since': none, 'until': range.until, 'why': "this model is built anew, of all rows"}) -%}
    {%- endif -%}
    {%- do return(range) -%}
{%- endmacro %}

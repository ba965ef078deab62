{#- Brings a staged batch into history and hub, one commit each, and says so in the ledger. Each step may be done
    twice: what was staged is never classified anew, and the history goes before the hub. -#}
{% macro refresh_finish(load, batch, is_redo) -%}
    {%- set type = load.settings.type -%}
    {%- set codes = batch.get('code_counts', {}).keys() | list -%}
    {%- set changes = codes | reject('in', ['U', 'O', 'X', 'R']) | list -%}
    {%- if type == 'key' and heartbeat.refresh_is_first(load, batch) -%}
        {%- do heartbeat.refresh_fill_by_key(load, batch) -%}
    {%- elif type == 'key' -%}
        {%- if is_redo or load.settings['deletes.when'] or changes not in ([], ['S']) -%}
            {%- do heartbeat.refresh_apply_key_history(load, batch, is_redo) -%}
        {%- endif -%}
        {%- if load.settings.late_arriving == 'history' and (is_redo or 'O' in codes or 'U' in codes) -%}
            {%- do heartbeat.refresh_apply_late_rows(load, batch) -%}
        {%- endif -%}
        {#- Where nothing is new, no commit is needed. -#}
        {%- if is_redo or load.settings['deletes.when'] or changes -%}
            {%- do heartbeat.refresh_apply_key_hub(load, batch) -%}
        {%- endif -%}
    {%- elif type == 'full' -%}
        {%- do heartbeat.refresh_apply_full(load, batch) -%}
    {%- else -%}
        {%- do heartbeat.refresh_apply_rows(load, batch) -%}
    {%- endif -%}
    {%- do heartbeat.refresh_record(load, batch, 'COMPLETE') -%}
{%- endmacro %}

{#- Brings staged batches into history and hub, one commit each, and says so in the ledger. Each step may be done
    twice: what was staged is never classified anew, and the history goes before the hub. -#}
{% macro refresh_finish(load, batches, is_redo) -%}
    {%- set type, has_deletes = load.settings.type, load.settings['deletes.when'] -%}
    {%- set codes = [] -%}
    {%- for batch in batches -%}
        {%- do codes.extend(batch.get('code_counts', {}).keys()) -%}
    {%- endfor -%}
    {%- set changes = codes | reject('in', ['U', 'O', 'X', 'R']) | list -%}
    {%- if type == 'key' and heartbeat.refresh_is_first(load, batches[0]) -%}
        {%- do heartbeat.refresh_fill_by_key(load, batches[0]) -%}
    {%- elif type == 'key' -%}
        {%- if is_redo or has_deletes or changes | reject('equalto', 'S') | list -%}
            {%- do heartbeat.refresh_apply_key_history(load, batches, is_redo) -%}
        {%- endif -%}
        {%- if load.settings.late_arriving == 'history' and (is_redo or 'O' in codes or 'U' in codes) -%}
            {%- do heartbeat.refresh_apply_late_rows(load, batches[0]) -%}
        {%- endif -%}
        {#- Where nothing is new, no commit is needed. -#}
        {%- if is_redo or has_deletes or changes -%}
            {%- do heartbeat.refresh_apply_key_hub(load, batches) -%}
        {%- endif -%}
    {%- elif type == 'full' -%}
        {%- do heartbeat.refresh_apply_full(load, batches) -%}
    {%- else -%}
        {%- do heartbeat.refresh_apply_rows(load, batches) -%}
    {%- endif -%}
    {%- do heartbeat.refresh_record(load, batches, 'COMPLETE') -%}
{%- endmacro %}

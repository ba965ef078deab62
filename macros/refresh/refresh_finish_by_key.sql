{#- Brings staged batches of a key refresh into history and hub, by no more than their codes ask for: where nothing is new, no
    commit is needed, and keys that are all new need no merge. -#}
{% macro refresh_finish_by_key(load, batches, is_redo) -%}
    {%- set is_first = heartbeat.refresh_is_first(load, batches[0]) -%}
    {%- set has_flags, codes = load.settings['deletes.when'], [] -%}
    {%- for batch in batches -%}
        {%- do codes.extend(batch.get('code_counts', {}).keys()) -%}
    {%- endfor -%}
    {%- set changes = codes | reject('in', ['U', 'O', 'X', 'R']) | unique | list -%}
    {#- A second try does not know the codes, and a flag may say something of a key that nobody knows. -#}
    {%- set may_be_any = is_redo or has_flags -%}
    {%- set is_late = load.settings.late_arriving == 'history' and (is_redo or 'O' in codes or 'U' in codes) -%}
    {#- A key that was deleted is new, too, and has a version that has to be closed. -#}
    {%- set are_all_new = changes == ['N'] and not (may_be_any or load.settings['deletes.complete'] or is_late) -%}
    {%- if is_first or are_all_new -%}
        {%- do heartbeat.refresh_fill_by_key(load, batches) -%}
    {%- else -%}
        {%- if load.settings.history and (may_be_any or changes | reject('equalto', 'S') | list) -%}
            {%- do heartbeat.refresh_apply_key_history(load, batches, is_redo) -%}
        {%- endif -%}
        {%- if is_late -%}
            {%- do heartbeat.refresh_apply_late_rows(load, batches[0]) -%}
        {%- endif -%}
        {%- if may_be_any or changes -%}
            {%- do heartbeat.refresh_apply_key_hub(load, batches, is_redo or 'N' in changes) -%}
        {%- endif -%}
    {%- endif -%}
    {%- if is_first or may_be_any or changes -%}
        {%- do heartbeat.refresh_count_hub(load, batches) -%}
    {%- endif -%}
{%- endmacro %}

{#- Brings staged batches into history and hub, one commit each, and says so in the ledger. Each step may be done
    twice: what was staged is never classified anew, and the history goes before the hub. -#}
{% macro refresh_finish(load, batches, is_redo) -%}
    {%- set type = load.settings.type -%}
    {%- if type == 'key' -%}
        {%- do heartbeat.refresh_finish_by_key(load, batches, is_redo) -%}
    {%- elif type == 'full' -%}
        {%- do heartbeat.refresh_apply_full(load, batches) -%}
    {%- elif type == 'custom' and not heartbeat.refresh_is_first(load, batches[0]) -%}
        {%- do heartbeat.refresh_apply_custom(load, batches[0], is_redo) -%}
    {%- else -%}
        {%- do heartbeat.refresh_apply_rows(load, batches) -%}
    {%- endif -%}
    {%- for batch in batches if load.settings.archive_days == 0 -%}
        {#- Its rows go with the commit that archives the next batch. -#}
        {%- do batch.update(is_vacuumed=true) -%}
    {%- endfor -%}
    {%- do heartbeat.refresh_record(load, batches, 'COMPLETE') -%}
{%- endmacro %}

{#- The state of a batch that is not to be taken: it holds nothing, it was received before, or it is a complete extract
    that is older than another one. -#}
{% macro refresh_reason_to_skip(load, batch) -%}
    {%- set settings = load.settings -%}
    {%- if batch.record_count == 0 and not settings.allow_empty and not batch.is_declared -%}
        {%- do return('SKIPPED_EMPTY') -%}
    {%- endif -%}
    {%- set live = load.batches | selectattr('state', 'in', ['STAGED', 'COMPLETE']) | list -%}
    {%- if settings.on_duplicate_batch == 'skip' and not settings.batch_by and not load.is_replay
        and heartbeat.refresh_still_holds(settings, batch, live) -%}
        {%- do return('SKIPPED_DUPLICATE') -%}
    {%- elif settings['deletes.complete'] and settings.extracted_at and batch.range_to is not none -%}
        {%- for other in live if other.range_to | int > batch.range_to | int -%}
            {%- do return('SKIPPED_OLD') -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

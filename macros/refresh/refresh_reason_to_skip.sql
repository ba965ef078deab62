{#- The state of a batch that is not to be taken: it holds nothing, it was received before, or it is a complete extract
    that is older than another one. Where a row does not say when it was true, only the newest batch is compared: the
    data may have come back to what it was. -#}
{% macro refresh_reason_to_skip(load, batch) -%}
    {%- set settings = load.settings -%}
    {%- if batch.record_count == 0 and not settings.allow_empty and not batch.is_declared -%}
        {%- do return('SKIPPED_EMPTY') -%}
    {%- endif -%}
    {%- set live = load.batches | selectattr('state', 'in', ['STAGED', 'COMPLETE']) | list -%}
    {%- set is_dated = settings.updated_at or settings.extracted_at or settings.type not in ('key', 'full') -%}
    {%- set compared = live if is_dated else live[-1:] -%}
    {%- if settings.on_duplicate_batch == 'skip' and not settings.batch_by and not load.is_replay
        and batch.fingerprint in compared | map(attribute='fingerprint') -%}
        {%- do return('SKIPPED_DUPLICATE') -%}
    {%- elif settings['deletes.complete'] and settings.extracted_at and batch.range_to is not none -%}
        {%- for other in live if other.range_to | int > batch.range_to | int -%}
            {%- do return('SKIPPED_OLD') -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

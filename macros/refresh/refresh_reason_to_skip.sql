{#- The state of a batch that is not to be taken: it holds nothing, or it was received before. Where a row does not say
    when it was true, only the newest batch is compared: the data may have come back to what it was. -#}
{% macro refresh_reason_to_skip(load, batch) -%}
    {%- set settings = load.settings -%}
    {%- if batch.record_count == 0 and not settings.allow_empty -%}
        {%- do return('SKIPPED_EMPTY') -%}
    {%- endif -%}
    {%- if settings.batch_by or settings.on_duplicate_batch == 'append' or load.is_replay -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set live = load.batches | selectattr('state', 'in', ['STAGED', 'COMPLETE']) | list -%}
    {%- if settings.type == 'key' and not settings.updated_at or settings.type == 'full' and not settings.extracted_at -%}
        {%- set live = live[-1:] -%}
    {%- endif -%}
    {%- if settings.on_duplicate_batch == 'skip' and batch.fingerprint in live | map(attribute='fingerprint') -%}
        {%- do return('SKIPPED_DUPLICATE') -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

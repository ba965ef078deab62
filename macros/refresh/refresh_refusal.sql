{#- Why a batch must not reach the hub, as a sentence; nothing when it may. -#}
{% macro refresh_refusal(load, batch) -%}
    {%- set settings = load.settings -%}
    {%- set live = load.batches | selectattr('state', 'in', ['STAGED', 'COMPLETE']) | list -%}
    {%- set conflict = heartbeat.refresh_refusal_of_conflict(load, batch) -%}
    {%- if settings.batch_by and batch.batch is none -%}
        {%- do return(batch.record_count ~ " rows have no value in " ~ settings.batch_by
            ~ ", which batch_by names, so that nobody can tell whether they came before") -%}
    {%- elif settings.on_duplicate_batch == 'fail' and not settings.batch_by and not load.is_replay
        and batch.fingerprint in live | map(attribute='fingerprint') -%}
        {%- do return("it is the same as an earlier one, and on_duplicate_batch is fail") -%}
    {%- elif batch.rejected and settings.null_keys == 'fail' -%}
        {%- do return(batch.rejected ~ " of its " ~ batch.record_count ~ " rows have no value in "
            ~ (settings.key + [settings.updated_at or settings.extracted_at]) | select | join(" or ")
            ~ "; null_keys: quarantine keeps such rows out of the hub") -%}
    {%- elif batch.rejected and settings.null_values == 'fail' -%}
        {%- do return(batch.rejected ~ " of its " ~ batch.record_count ~ " rows have no readable value in "
            ~ settings.column ~ "; null_values: quarantine keeps such rows out of the hub") -%}
    {%- elif conflict is not none -%}
        {%- do return(conflict) -%}
    {%- elif settings.column and batch.range_from is not none -%}
        {%- do return(heartbeat.refresh_refusal_of_range(settings, batch, live)
            or heartbeat.refresh_refusal_of_closed(load, batch)) -%}
    {%- elif settings['deletes.complete'] -%}
        {%- do return(heartbeat.refresh_refusal_of_extract(load, batch)) -%}
    {%- elif settings.type == 'full' and settings.max_shrink_percent is not none and live
        and batch.record_count < live[-1].record_count | int * (100 - settings.max_shrink_percent) / 100 -%}
        {%- do return("it has " ~ batch.record_count ~ " rows after " ~ live[-1].record_count
            ~ ", and max_shrink_percent is " ~ settings.max_shrink_percent) -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- Takes batches from the staging table up to the end, in the order of their receipt. Those that are not to be taken are
    told of in the ledger; the others are brought in together where that comes to the same as one after the other. -#}
{% macro refresh_take(load, batches) -%}
    {%- set together = [] -%}
    {%- for batch in batches -%}
        {%- do load.update(received_at=batch.received_at) -%}
        {%- set reason = heartbeat.refresh_reason_to_skip(load, batch) -%}
        {%- if reason is not none -%}
            {%- do heartbeat.refresh_record(load, [batch], reason) -%}
        {%- else -%}
            {%- set refusal = heartbeat.refresh_refusal(load, batch) -%}
            {%- if refusal is not none -%}
                {%- do heartbeat.refresh_bring(load, together) -%}
                {%- do heartbeat.refresh_record(load, [batch], 'FAILED', refusal) -%}
                {%- do run_query("drop table if exists " ~ load.tables.staging) -%}
                {%- do exceptions.raise_compiler_error(load.name ~ ": batch " ~ batch.id ~ " is refused: " ~ refusal) -%}
            {%- endif -%}
            {#- What comes after it is held against it, even if it is not written yet. -#}
            {%- do batch.update(state='STAGED') -%}
            {%- do together.append(batch) -%}
        {%- endif -%}
        {%- do load.batches.append(batch) -%}
        {#- Each range gives way to those after it, so the text of a query grows with the square of their number. -#}
        {%- set is_full = together | length >= var('heartbeat_batches_at_once', 30) | int -%}
        {%- if loop.last or is_full or not heartbeat.refresh_may_join(load.settings) or heartbeat.refresh_is_first(load, batch) -%}
            {%- do heartbeat.refresh_bring(load, together) -%}
            {%- do together.clear() -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Processes batches of the staging table in the order of receipt. Skipped ones are recorded in the batch log; the
    others are applied together where that equals one after the other. -#}
{% macro _refresh_process_batches(run, batches) -%}
    {%- set together = [] -%}
    {%- for batch in batches -%}
        {%- do run.update(received_at=batch.received_at) -%}
        {%- set reason = heartbeat._refresh_skip_reason(run, batch) -%}
        {%- if reason is not none -%}
            {%- do heartbeat._refresh_record_batches(run, [batch], reason) -%}
        {%- else -%}
            {%- set refusal = heartbeat._refresh_refusal(run, batch) -%}
            {%- if refusal is not none -%}
                {%- do heartbeat._refresh_apply_batches(run, together) -%}
                {%- do heartbeat._refresh_record_batches(run, [batch], 'FAILED', refusal) -%}
                {%- do run_query("drop table if exists " ~ run.tables.staging) -%}
                {%- do exceptions.raise_compiler_error(run.name ~ ": batch " ~ batch.id ~ " is refused: " ~ refusal) -%}
            {%- endif -%}
            {#- Later batches are compared with it, even if it is not written yet. -#}
            {%- do batch.update(state='STAGED') -%}
            {%- do together.append(batch) -%}
        {%- endif -%}
        {%- do run.batches.append(batch) -%}
        {#- Each range excludes those after it, so the text of a query grows with the square of their number. -#}
        {%- set is_full = together | length >= var('heartbeat_batches_at_once', 30) | int -%}
        {%- if loop.last or is_full or not heartbeat._refresh_can_combine(run.settings) or heartbeat._refresh_is_first(run, batch) -%}
            {%- do heartbeat._refresh_apply_batches(run, together) -%}
            {%- do together.clear() -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Whether pending batches may be applied together. Not where the effect of one depends on the target table as the
    one before it left it: a custom delete, a complete extract, the difference of a full batch, a closed period, late
    rows for the history, rows kept after their key is deleted, and a key whose newer row is skipped when it is
    unchanged. -#}
{% macro _refresh_can_combine(settings) -%}
    {%- if settings.type == 'key' -%}
        {%- set is_kept = settings.unchanged_newer == 'touch' if settings.updated_at else not settings.extracted_at -%}
        {%- do return(is_kept and settings.late_arriving == 'ignore' and not settings['deletes.complete']
            and settings['deletes.mode'] != 'soft') -%}
    {%- endif -%}
    {%- do return(settings.type != 'custom' and not settings.immutable_where and not settings.diff_key) -%}
{%- endmacro %}

{#- Applies staged batches together: the batch log claims their numbers (`CLAIMED`), which no other run can take then,
    their rows are written with their codes to the batch archive, the batch log records it (`STAGED`), and history and
    target table follow. -#}
{% macro _refresh_apply_batches(run, batches) -%}
    {%- if batches -%}
        {%- if not run.are_tables_ready -%}
            {%- do heartbeat._refresh_create_tables(run, heartbeat._refresh_is_first(run, batches[0])) -%}
        {%- endif -%}
        {%- if not run.is_replay -%}
            {%- do heartbeat._refresh_record_batches(run, batches, 'CLAIMED') -%}
        {%- endif -%}
        {%- do heartbeat._refresh_archive_batches(run, batches) -%}
        {%- do heartbeat._refresh_record_batches(run, batches, 'STAGED') -%}
        {%- do heartbeat._refresh_complete_batches(run, batches, false) -%}
    {%- endif -%}
{%- endmacro %}

{#- Finishes the batches that an earlier run has staged and not completed, in the order of receipt, after those that
    an operation has begun to unload. -#}
{% macro _refresh_recover_batches(run) -%}
    {%- for batch in run.batches if batch.state == 'UNLOADING' -%}
        {%- do heartbeat._refresh_unload_batch(run, batch) -%}
    {%- endfor -%}
    {%- for batch in run.batches if batch.state == 'STAGED' -%}
        {%- do log(run.name ~ ": finishing batch " ~ batch.id ~ ", which a run before has left", info=true) -%}
        {%- do heartbeat._refresh_complete_batches(run, [batch], true) -%}
    {%- endfor -%}
{%- endmacro %}

{#- The result of a run in one line: its batches, with their rows by code. -#}
{% macro _refresh_summary(batches) -%}
    {%- set counted = [] -%}
    {%- for batch in batches -%}
        {%- set counts = [] -%}
        {%- for code, count in batch.get('code_counts', {}).items() -%}
            {%- do counts.append(code ~ " " ~ count) -%}
        {%- endfor -%}
        {%- do counted.append(
            "batch " ~ batch.id ~ " " ~ batch.state ~ ", " ~ batch.record_count ~ " rows"
            ~ (": " ~ counts | join(", ") if counts else "")) -%}
    {%- endfor -%}
    {%- do return(counted | join("; ") or "nothing new") -%}
{%- endmacro %}

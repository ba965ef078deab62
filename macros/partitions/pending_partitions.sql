{#- A condition for `where`: true in the partitions of a table that this model has not taken yet, or that changed
    since. A comment in the condition lists them for record_partitions, the post-hook. -#}
{% macro pending_partitions(bronze, partition='p_extracted_at', taken=none, look_back_days=7, max_batches=none) -%}
    {%- if not execute or flags.EMPTY or model.resource_type == 'unit_test' -%}
        {%- do return("true") -%}
    {%- endif -%}
    {%- set is_refresh = model.config.materialized == 'refresh' -%}
    {%- if not is_refresh and taken is none and config.get('file_format', 'delta' if target.type == 'databricks') != 'delta' -%}
        {%- do exceptions.raise_compiler_error(
            model.name ~ ": pending_partitions keeps its record beside a Delta table: set file_format: delta, or name a column "
            ~ "that holds the partition as taken") -%}
    {%- endif -%}
    {%- set look_back_days = heartbeat._partition_limit('look_back_days', look_back_days, 0) -%}
    {%- set max_batches = heartbeat._partition_limit('max_batches_per_run', max_batches, 1) -%}
    {%- set source = heartbeat._partitions_of(bronze, partition) -%}
    {%- set known = {} -%}
    {%- if is_refresh -%}
        {%- set known = heartbeat._partitions_in_batch_log(model, this, taken, source.column.type) -%}
    {%- elif is_incremental() and taken is none -%}
        {%- set known = heartbeat._partitions_taken(this, source) -%}
    {%- elif is_incremental() -%}
        {%- set known = heartbeat._partitions_in_column(this, taken, source.column.type) -%}
    {%- endif -%}
    {%- set found = heartbeat._select_partitions(
        source.partitions, known, look_back_days, max_batches, run_started_at.timestamp()) -%}
    {%- do heartbeat._log_selection(model.name, source.name, found, look_back_days) -%}
    {%- set note = {'source': source.name, 'source_id': source.id, 'column': source.column.name,
        'look_back_days': look_back_days, 'partitions': found.chosen} -%}
    {#- A star in JSON may be escaped, so that no value ends the comment, or begins another one. -#}
    {%- do return("/* heartbeat.pending_partitions " ~ tojson(note) | replace("*", "\\u002a") ~ " */ "
        ~ heartbeat._partition_filter(source.column, found.chosen)) -%}
{%- endmacro %}

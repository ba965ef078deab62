{#- How many rows of a batch have which code. Where there is nothing to hold it against, its facts tell. -#}
{% macro refresh_code_counts(load, batch) -%}
    {%- set counts, known = {}, {'R': batch.rejected} -%}
    {%- if load.settings.type == 'key' and heartbeat.refresh_is_first(load, batch) and batch.is_unique -%}
        {%- set known = {'N': batch.record_count - batch.rejected - batch.deleted, 'R': batch.rejected, 'U': batch.deleted} -%}
    {%- elif load.settings.type == 'key' -%}
        {%- set query -%}
            select s_record_status_code, count(*) from {{ load.tables.batches }}
            where s_input_id = {{ batch.id }} and s_record_status_code is not null group by s_record_status_code
            order by s_record_status_code
        {%- endset -%}
        {%- set known = dict(heartbeat.rows_of(query, 2)) -%}
    {%- endif -%}
    {%- for code, count in known.items() if count -%}
        {%- do counts.update({code: count | int}) -%}
    {%- endfor -%}
    {%- do return(counts) -%}
{%- endmacro %}

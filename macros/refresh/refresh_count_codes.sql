{#- Counts for each of some batches how many of its rows have which code (`code_counts`). Where there is nothing to hold it
    against, its facts tell. -#}
{% macro refresh_count_codes(load, batches) -%}
    {%- set is_key = load.settings.type == 'key' -%}
    {%- for batch in batches -%}
        {%- set counts = {'N': batch.record_count - batch.rejected - batch.deleted, 'R': batch.rejected, 'U': batch.deleted} -%}
        {%- set is_counted = is_key and not (heartbeat.refresh_is_first(load, batch) and batch.is_unique) -%}
        {%- do batch.update(code_counts={}, conflict_count=0 if is_key else none) -%}
        {%- for code, count in counts.items() if count and not is_counted and (is_key or code == 'R') -%}
            {%- do batch.code_counts.update({code: count}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if is_key and not batches[0].code_counts -%}
        {%- set query -%}
            select s_input_id, s_record_status_code, count(*)
            from {{ load.tables.batches }}
            where {{ heartbeat.refresh_of_batches(batches) }} and s_record_status_code is not null
            group by s_input_id, s_record_status_code
            order by s_input_id, s_record_status_code
        {%- endset -%}
        {%- for row in heartbeat.rows_of(query, 3) -%}
            {%- for batch in batches if batch.id == row[0] | int -%}
                {%- do batch.code_counts.update({row[1]: row[2] | int}) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- do heartbeat.refresh_count_conflicts(load, batches) -%}
    {%- elif load.settings.diff_key -%}
        {%- do batches[0].update(code_counts=heartbeat.refresh_diff(load, batches[0])) -%}
    {%- endif -%}
{%- endmacro %}

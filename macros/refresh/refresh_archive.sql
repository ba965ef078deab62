{#- Writes the rows of a batch with their codes into the archive, in one commit that a second try repeats, and
    counts them. Neither hub nor history is touched. -#}
{% macro refresh_archive(load, batch) -%}
    {%- set tables = load.tables -%}
    {%- if load.settings.type == 'key' -%}
        {%- set classified = heartbeat.refresh_classified_by_key(load, batch) -%}
    {%- else -%}
        {%- set classified = heartbeat.refresh_staged_rows(load, batch) -%}
    {%- endif -%}
    {%- set given = load.columns | map(attribute='name') | list
        + heartbeat.refresh_system_columns(load.settings, 'batches').keys() | list -%}
    {%- set query -%}
        insert into {{ tables.batches }} replace where s_input_id = {{ batch.id }}
        select {{ heartbeat.refresh_values_for(load, tables.batches, given, 'classified') }}
        from (
            {{ classified }}
        ) as classified
    {%- endset -%}
    {%- do run_query(query) -%}
    {%- set counts = {} -%}
    {%- if load.settings.type != 'key' -%}
        {%- do batch.update(code_counts={'R': batch.rejected} if batch.rejected else {}) -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set count_query -%}
        select s_record_status_code, count(*) from {{ tables.batches }}
        where s_input_id = {{ batch.id }} and s_record_status_code is not null group by s_record_status_code
        order by s_record_status_code
    {%- endset -%}
    {%- for code, count in heartbeat.rows_of(count_query, 2) -%}
        {%- do counts.update({code: count | int}) -%}
    {%- endfor -%}
    {%- do batch.update(code_counts=counts) -%}
{%- endmacro %}

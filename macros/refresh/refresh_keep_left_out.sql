{#- Puts the rows of the batches that a reset leaves out into the new archive, as they came: they may be reloaded. -#}
{% macro refresh_keep_left_out(load, beside, batches) -%}
    {%- set given = load.columns | map(attribute='name') | list + ['s_input_id', 's_row_num'] -%}
    {%- set query -%}
        insert into {{ beside.tables.batches }}
        select {{ heartbeat.refresh_values_for(load, beside.tables.batches, given, 'given') }}
        from {{ load.tables.batches }} as given
        where given.s_input_id not in ({{ batches | map(attribute='id') | join(", ") or "0" }}) and given.s_row_num is not null
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

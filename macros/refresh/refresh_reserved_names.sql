{#- The names of all columns that a refresh adds to a table, for whatever type. -#}
{% macro refresh_reserved_names() -%}
    {%- do return([
        's_batch', 's_row_num', 's_input_id', 's_seen_input_id', 's_record_status_code', 's_hash',
        's_update_timestamp', 's_effective_from', 's_effective_to', 's_deleted_flag', 's_timestamp', 's_sequence', 's_watermark',
    ]) -%}
{%- endmacro %}

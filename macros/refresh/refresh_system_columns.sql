{#- The columns that a refresh adds to one of its tables (`hub`, `history` or `batches`), with their types. -#}
{% macro refresh_system_columns(settings, table) -%}
    {%- set columns = {'s_input_id': 'bigint'} -%}
    {%- if table == 'batches' -%}
        {%- do columns.update({'s_row_num': 'bigint', 's_record_status_code': 'string'}) -%}
    {%- endif -%}
    {%- if settings.type == 'key' -%}
        {%- if table == 'hub' -%}
            {%- do columns.update({'s_seen_input_id': 'bigint', 's_record_status_code': 'string'}) -%}
        {%- endif -%}
        {%- do columns.update({'s_hash': 'bigint', 's_update_timestamp': 'timestamp'}) -%}
        {%- if table == 'history' -%}
            {%- do columns.update({'s_effective_from': 'timestamp', 's_effective_to': 'timestamp'}) -%}
        {%- endif -%}
        {%- if table != 'hub' or settings['deletes.mode'] == 'soft' -%}
            {%- do columns.update({'s_deleted_flag': 'boolean'}) -%}
        {%- endif -%}
    {%- elif settings.type == 'timestamp' -%}
        {%- do columns.update({'s_timestamp': 'timestamp'}) -%}
    {%- elif settings.type == 'sequence' -%}
        {%- do columns.update({'s_sequence': 'decimal(38, 0)'}) -%}
    {%- endif -%}
    {%- do return(columns) -%}
{%- endmacro %}

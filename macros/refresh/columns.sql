{#- All columns of a table in its order, with name, quoted name and type, cached in `run.shapes`: whatever recreates
    or alters the table removes its entry. -#}
{% macro _refresh_table_columns(run, relation) -%}
    {%- if relation | string not in run.shapes -%}
        {%- set shape = [] -%}
        {%- for name, type in heartbeat._query_rows("describe query select * from " ~ relation, 2) -%}
            {%- do shape.append({'name': name, 'quoted': adapter.quote(name), 'type': type}) -%}
        {%- endfor -%}
        {%- do run.shapes.update({relation | string: shape}) -%}
    {%- endif -%}
    {%- do return(run.shapes[relation | string]) -%}
{%- endmacro %}

{#- The columns of a table that are the model's own, with name, quoted name and type. -#}
{% macro _refresh_model_columns(run, relation) -%}
    {%- do return(heartbeat._refresh_table_columns(run, relation)
        | rejectattr('name', 'in', heartbeat._refresh_reserved_names()) | list) -%}
{%- endmacro %}

{#- The types of a table's own columns, by their names in lower case. -#}
{% macro _refresh_column_types(run, relation) -%}
    {%- set there = {} -%}
    {%- for column in heartbeat._refresh_model_columns(run, relation) -%}
        {%- do there.update({column.name | lower: column.type}) -%}
    {%- endfor -%}
    {%- do return(there) -%}
{%- endmacro %}

{#- Quoted names of columns, separated by commas. -#}
{% macro _refresh_column_list(columns, qualifier=none) -%}
    {%- for column in columns -%}
        {{ qualifier ~ "." if qualifier }}{{ adapter.quote(column) }}{{ ", " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

{#- The names of the columns of a table, in lower case. -#}
{% macro _refresh_column_names(relation) -%}
    {%- do return(heartbeat._query_rows("describe query select * from " ~ relation, 2) | map('first') | map('lower') | list) -%}
{%- endmacro %}

{#- Select items that fill a table, in its own order, from rows that may lack some of its columns; `values` overrides
    the column of the same name. -#}
{% macro _refresh_select_items(run, relation, given, qualifier, values={}) -%}
    {%- set names = given | map('lower') | list -%}
    {%- for column in heartbeat._refresh_table_columns(run, relation) -%}
        {%- if column.name in values -%}
            {{ values[column.name] }} as {{ column.quoted }}
        {%- elif column.name | lower in names -%}
            {{ qualifier }}.{{ column.quoted }}
        {%- else -%}
            cast(null as {{ column.type }}) as {{ column.quoted }}
        {%- endif -%}
        {{ ", " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

{#- The columns that a refresh adds to one of its tables (`hub`, `history` or `batches`), with their types. -#}
{% macro _refresh_system_columns(settings, table) -%}
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

{#- The names of all columns that a refresh adds to a table, for whatever type. -#}
{% macro _refresh_reserved_names() -%}
    {%- do return([
        's_batch', 's_row_num', 's_input_id', 's_seen_input_id', 's_record_status_code', 's_hash',
        's_update_timestamp', 's_effective_from', 's_effective_to', 's_deleted_flag', 's_timestamp', 's_sequence', 's_watermark',
    ]) -%}
{%- endmacro %}

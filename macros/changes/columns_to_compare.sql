{#- The columns of the later state of a table, and which of them the earlier one had; `none` when a column is of
    another type than before. -#}
{% macro columns_to_compare(relation, range, keys) -%}
    {%- set query = "describe query select * from " ~ relation ~ " version as of " -%}
    {%- set before = dict(heartbeat.rows_of(query ~ range.since, 2)) -%}
    {%- set columns = [] -%}
    {%- for name, type in heartbeat.rows_of(query ~ range.until, 2) -%}
        {%- if before.get(name, type) != type -%}
            {%- do return(none) -%}
        {%- endif -%}
        {%- do columns.append(
            {'name': name, 'quoted': adapter.quote(name), 'type': type, 'is_old': name in before}) -%}
    {%- endfor -%}
    {%- set names = columns | map(attribute='name') | list -%}
    {%- for key in keys if key not in names -%}
        {%- do exceptions.raise_compiler_error(
            "changed_rows: the key " ~ key ~ " is no column of " ~ relation ~ "; it has " ~ names | join(', ')) -%}
    {%- endfor -%}
    {%- for name in ['_change_type', '_change_sign'] if name in names -%}
        {%- do exceptions.raise_compiler_error(
            "changed_rows: " ~ relation ~ " has a column " ~ name ~ ", a name that its changes need: rename it") -%}
    {%- endfor -%}
    {%- do return(columns) -%}
{%- endmacro %}

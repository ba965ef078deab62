{#- Gives a table the columns that the model has new, and the types that it has widened; refresh_check_types has seen
    that the hub may be widened, and the tables beside it follow. -#}
{% macro refresh_follow_columns(load, name) -%}
    {%- set relation = load.tables[name] -%}
    {%- set there = heartbeat.refresh_types_there(load, relation) -%}
    {%- set added, widened = [], [] -%}
    {%- for column in load.columns -%}
        {%- if column.name | lower not in there -%}
            {%- do added.append(column) -%}
        {%- elif heartbeat.refresh_widens(there[column.name | lower], column.type) -%}
            {%- do widened.append(column) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if widened and name != 'hub' -%}
        {%- do run_query("alter table " ~ relation ~ " set tblproperties ('delta.enableTypeWidening' = 'true')") -%}
    {%- endif -%}
    {%- for column in added -%}
        {%- do run_query("alter table " ~ relation ~ " add columns (" ~ column.quoted ~ " " ~ column.type ~ ")") -%}
    {%- endfor -%}
    {%- for column in widened -%}
        {%- do run_query("alter table " ~ relation ~ " alter column " ~ column.quoted ~ " type " ~ column.type) -%}
    {%- endfor -%}
    {%- if added or widened -%}
        {%- do load.shapes.pop(relation | string, none) -%}
    {%- endif -%}
{%- endmacro %}

{#- Gives a table the wider type of columns that the model has widened; refresh_check_types has seen that the hub allows
    it, and the tables beside it follow. -#}
{% macro refresh_widen_columns(load, name) -%}
    {%- set relation = load.tables[name] -%}
    {%- set there = heartbeat.refresh_types_there(relation) -%}
    {%- for column in load.columns if heartbeat.refresh_widens(there.get(column.name | lower, ''), column.type) -%}
        {%- if name != 'hub' and loop.first -%}
            {%- do run_query("alter table " ~ relation ~ " set tblproperties ('delta.enableTypeWidening' = 'true')") -%}
        {%- endif -%}
        {%- do run_query("alter table " ~ relation ~ " alter column " ~ column.quoted ~ " type " ~ column.type) -%}
    {%- endfor -%}
{%- endmacro %}

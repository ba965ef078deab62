{#- Adds to a table the columns of the model that it does not have yet, before its system columns' values matter. -#}
{% macro refresh_add_columns(load, relation) -%}
    {%- set there = heartbeat.refresh_columns_of(relation) | map(attribute='name') | map('lower') | list -%}
    {%- set added = [] -%}
    {%- for column in load.columns if column.name | lower not in there -%}
        {%- do added.append(column.quoted ~ " " ~ column.type) -%}
    {%- endfor -%}
    {%- if added -%}
        {%- do run_query("alter table " ~ relation ~ " add columns (" ~ added | join(", ") ~ ")") -%}
    {%- endif -%}
{%- endmacro %}

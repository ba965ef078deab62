{#- Lets a table that is there have a column of a type which Delta gives to a new table by itself, and to this one only
    when told to. -#}
{% macro refresh_allow_types(load, relation) -%}
    {%- set there = heartbeat.refresh_types_there(load, relation) -%}
    {%- if 'timestamp_ntz' in load.columns | map(attribute='type') and 'timestamp_ntz' not in there.values() -%}
        {%- do run_query("alter table " ~ relation
            ~ " set tblproperties ('delta.feature.timestampNtz' = 'supported')") -%}
    {%- endif -%}
{%- endmacro %}

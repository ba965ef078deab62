{#- Refuses a model that has widened a column of a hub that does not allow it, since others read the hub. -#}
{% macro refresh_check_types(load) -%}
    {%- set hub, property = load.tables.hub, "delta.enableTypeWidening" -%}
    {%- if load.settings.type == 'full' or load_relation(hub) is none -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set there = heartbeat.refresh_types_there(load, hub) -%}
    {%- for column in load.columns if heartbeat.refresh_widens(there.get(column.name | lower, ''), column.type) -%}
        {#- agate reads a truth value where it can. -#}
        {%- set told = heartbeat.rows_of("show tblproperties " ~ hub ~ " ('" ~ property ~ "')", 2)[0][1] -%}
        {%- if told | string | lower != 'true' -%}
            {%- do exceptions.raise_compiler_error(
                load.name ~ ": the column " ~ column.name ~ " is " ~ column.type ~ " now, and "
                ~ there[column.name | lower] ~ " in the table: cast it to that, or set the table property " ~ property
                ~ " of " ~ hub ~ " to true") -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

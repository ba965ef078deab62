{#- Gives a table the wider type of columns that the model has widened. The hub has to allow it, since others read it; the
    tables beside it follow. -#}
{% macro refresh_widen_columns(load, name) -%}
    {%- set relation = load.tables[name] -%}
    {%- set there = {} -%}
    {%- for column in heartbeat.refresh_columns_of(relation) -%}
        {%- do there.update({column.name | lower: column.type}) -%}
    {%- endfor -%}
    {%- for column in load.columns if heartbeat.refresh_widens(there.get(column.name | lower, ''), column.type) -%}
        {%- set property = "delta.enableTypeWidening" -%}
        {#- agate reads a truth value where it can. -#}
        {%- set told = heartbeat.rows_of("show tblproperties " ~ relation ~ " ('" ~ property ~ "')", 2)[0][1] | string | lower -%}
        {%- if told != 'true' and name == 'hub' -%}
            {%- do exceptions.raise_compiler_error(
                load.name ~ ": the column " ~ column.name ~ " is " ~ column.type ~ " now, and "
                ~ there[column.name | lower] ~ " in the table: cast it to that, or set the table property " ~ property
                ~ " of " ~ relation ~ " to true") -%}
        {%- elif told != 'true' -%}
            {%- do run_query("alter table " ~ relation ~ " set tblproperties ('" ~ property ~ "' = 'true')") -%}
        {%- endif -%}
        {%- do run_query("alter table " ~ relation ~ " alter column " ~ column.quoted ~ " type " ~ column.type) -%}
    {%- endfor -%}
{%- endmacro %}

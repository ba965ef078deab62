{#- The fingerprint of some columns of a row, as SQL. A NULL leaves no trace, name included, so a new column that is
    NULL changes no hash, and a value that moves to another column changes it. -#}
{% macro refresh_hash(columns) -%}
    {%- set parts = [] -%}
    {%- for column in columns | sort(attribute='name') -%}
        {%- do parts.append("if(" ~ column.quoted ~ " is null, null, '" ~ column.name | lower ~ "')") -%}
        {%- do parts.append(heartbeat.refresh_canonical(column.quoted, column.type | lower)) -%}
    {%- endfor -%}
    {#- Without a column it is what all columns are that are NULL. -#}
    xxhash64({{ parts | join(", ") or "null" }})
{%- endmacro %}

{#- The partition that a model names, one JSON value for each level, as text. -#}
{% macro partition_given(partition, table) -%}
    {%- set levels = table.partition_columns -%}
    {%- if partition | length != levels | length and (levels or table.format != 'ICEBERG') -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: partition has " ~ partition | length ~ " values, but " ~ table.name ~ " has "
            ~ levels | length ~ " partition levels (" ~ levels | map(attribute='name') | join(', ')
            ~ "): give one value for each") -%}
    {%- endif -%}
    {%- set values = [] -%}
    {%- for value in partition -%}
        {%- if value is none or value is boolean or value is number -%}
            {%- do values.append(tojson(value)) -%}
        {%- else -%}
            {#- dbt's own function would write letters beyond ASCII as escapes, and the sensors do not. -#}
            {%- set text = value | string | replace("\\", "\\\\") | replace('"', '\\"') -%}
            {%- do values.append('"' ~ text ~ '"') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(values) -%}
{%- endmacro %}

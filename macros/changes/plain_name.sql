{#- A table's name or folder in the one spelling in which two of them are compared: that of table_key in
    harness/platform/sql_names.py. -#}
{% macro plain_name(name) -%}
    {%- set name = modules.re.sub('(?i)^(?:delta|parquet|iceberg)[.](?=`?[/\\w]*[/:])', '', name | trim) -%}
    {%- if '/' in name -%}
        {%- do return(modules.re.sub('(?i)^file:(?://)?(?=/)', '', name.replace('`', '')).rstrip('/') or '/') -%}
    {%- endif -%}
    {%- set plain = modules.re.sub('`([^`.]*)`', '\\1', name) | lower -%}
    {%- do return(modules.re.sub('^spark_catalog[.](?=(?:`[^`]*`|[^`.]+)[.])', '', plain)) -%}
{%- endmacro %}

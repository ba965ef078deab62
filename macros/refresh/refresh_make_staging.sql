{#- Puts rows into one of the tables that are this run's alone, `staging` or `versions`. -#}
{% macro refresh_make_staging(load, query, name='staging') -%}
    {%- do load.shapes.pop(load.tables[name] | string, none) -%}
    {%- do run_query("create or replace table " ~ load.tables[name] ~ " using delta tblproperties ('delta.dataSkippingNumIndexedCols' = '0') as " ~ query) -%}
{%- endmacro %}

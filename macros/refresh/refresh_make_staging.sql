{#- Puts rows into the staging table, which is this run's alone and made anew for each purpose. -#}
{% macro refresh_make_staging(load, query) -%}
    {%- do load.shapes.pop(load.tables.staging | string, none) -%}
    {%- do run_query("create or replace table " ~ load.tables.staging ~ " using delta as " ~ query) -%}
{%- endmacro %}

{#- The relations of a schema in the form that dbt-spark reads: every table of ours is a Delta table. -#}
{% macro list_relations_by_name(schema) %}
    {%- set views = run_query("show views in " ~ schema).columns["viewName"].values() | list -%}
    {%- set listed = [] -%}
    {%- for row in run_query("show tables in " ~ schema).rows -%}
        {%- set kind = "Type: VIEW" if row["tableName"] in views else "Provider: delta" -%}
        {%- do listed.append([schema, row["tableName"], row["isTemporary"], kind]) -%}
    {%- endfor -%}
    {%- do return(listed) -%}
{% endmacro %}

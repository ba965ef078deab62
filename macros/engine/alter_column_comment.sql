{#- Describes the columns of a table with one statement. dbt-databricks sends one for each column, which is most of what
    `init` sends. Several columns need Databricks Runtime 16.3 or Spark 4.0; the models need later ones. -#}
{% macro databricks__alter_column_comment(relation, column_dict) %}
    {%- set described = [] -%}
    {%- for column in column_dict.values() -%}
        {%- set comment = heartbeat._sql_literal(column['description'], 'string') -%}
        {%- do described.append(adapter.quote(column['name']) ~ " comment " ~ comment) -%}
    {%- endfor -%}
    {%- if described -%}
        {%- do run_query("alter table " ~ relation.render() ~ " alter column " ~ described | join(", ")) -%}
    {%- endif -%}
{% endmacro %}

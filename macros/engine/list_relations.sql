{#- Lists the relations of a schema. dbt-spark requests every detail of each of them, which costs a tick more than its
    decision, although a build needs only the names and which of them are views. Only dbt docs makes the long listing
    and reads the columns from it; Delta shows none there and views have Spark's internal type names, so the output of
    `describe` is written into it. -#}
{% macro spark__list_relations_without_caching(relation) %}
    {%- if flags.WHICH != 'generate' -%}
        {%- do return(_list_relations_by_name(relation.schema)) -%}
    {%- endif -%}
    {%- set listing = run_query("show table extended in " ~ relation.schema ~ " like '*'") -%}
    {#- Other relations of the schema are not in the docs, and may not be readable. -#}
    {%- set ours = graph.nodes.values() | map(attribute='alias') | list -%}
    {%- set described = [] -%}
    {%- for schema, identifier, is_temporary, information in listing.rows -%}
        {%- set lines = [information.split("\nSchema: root")[0]] -%}
        {%- if identifier in ours and not is_temporary -%}
            {%- set listed = api.Relation.create(schema=schema, identifier=identifier) -%}
            {%- for column in adapter.get_columns_in_relation(listed) -%}
                {%- do lines.append(" |-- " ~ column.name ~ ": " ~ _readable_type(column.dtype) ~ " (nullable = true)") -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do described.append([schema, identifier, is_temporary, lines | join("\n") ~ "\n"]) -%}
    {%- endfor -%}
    {%- do return(described) -%}
{% endmacro %}

{#- A type without the fields of a long structure, which push the other columns of dbt docs away; the description names
    them, and the yml beside a public relation has the type in full. -#}
{% macro _readable_type(dtype) %}
    {%- if dtype | length <= 40 or "struct<" not in dtype -%}
        {%- do return(dtype) -%}
    {%- endif -%}
    {%- set before = dtype.split("struct<")[0] -%}
    {%- do return(before ~ "struct<...>" ~ ">" * before.count("<")) -%}
{% endmacro %}

{#- The relations of a schema in the form that dbt-spark reads: every table of this project is a Delta table. -#}
{% macro _list_relations_by_name(schema) %}
    {%- set views = run_query("show views in " ~ schema).columns["viewName"].values() | list -%}
    {%- set listed = [] -%}
    {%- for row in run_query("show tables in " ~ schema).rows -%}
        {%- set kind = "Type: VIEW" if row["tableName"] in views else "Provider: delta" -%}
        {%- do listed.append([schema, row["tableName"], row["isTemporary"], kind]) -%}
    {%- endfor -%}
    {%- do return(listed) -%}
{% endmacro %}

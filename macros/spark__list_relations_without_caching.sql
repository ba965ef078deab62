{#- Lists the relations of a schema. dbt-spark asks for everything that is known of each of them, which
    costs a tick more than its decision; what it needs to build is the names, and which are views.
    dbt docs, for which alone the long listing is made, reads the columns from it, where Delta shows
    none and views have Spark's inner type names: they are written into it as `describe` tells them. -#}
{% macro spark__list_relations_without_caching(relation) %}
    {%- if flags.WHICH != 'generate' -%}
        {%- do return(list_relations_by_name(relation.schema)) -%}
    {%- endif -%}
    {%- set listing = run_query("show table extended in " ~ relation.schema ~ " like '*'") -%}
    {#- What else lives in the schema is not in the docs, and may not be readable. -#}
    {%- set ours = graph.nodes.values() | map(attribute='alias') | list -%}
    {%- set described = [] -%}
    {%- for schema, identifier, is_temporary, information in listing.rows -%}
        {%- set lines = [information.split("\nSchema: root")[0]] -%}
        {%- if identifier in ours and not is_temporary -%}
            {%- set listed = api.Relation.create(schema=schema, identifier=identifier) -%}
            {%- for column in adapter.get_columns_in_relation(listed) -%}
                {%- do lines.append(" |-- " ~ column.name ~ ": " ~ column.dtype ~ " (nullable = true)") -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do described.append([schema, identifier, is_temporary, lines | join("\n") ~ "\n"]) -%}
    {%- endfor -%}
    {%- do return(described) -%}
{% endmacro %}

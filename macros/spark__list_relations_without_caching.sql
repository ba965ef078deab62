{#- Lists the relations of a schema. dbt-spark reads the columns for dbt docs from this listing, where
    Delta shows none and views have Spark's inner type names: for `dbt docs generate` alone, the columns
    of each of our relations are written into it as `describe` tells them. -#}
{% macro spark__list_relations_without_caching(relation) %}
    {%- set listing = run_query("show table extended in " ~ relation.schema ~ " like '*'") -%}
    {%- if flags.WHICH != 'generate' -%}
        {%- do return(listing) -%}
    {%- endif -%}
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

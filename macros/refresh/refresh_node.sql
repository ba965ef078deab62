{#- The refresh model of a name, as dbt names models, with or without its package. -#}
{% macro refresh_node(model_name) -%}
    {%- set known = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'refresh' -%}
        {%- if model_name in (node.name, node.package_name ~ "." ~ node.name) -%}
            {%- do return(node) -%}
        {%- endif -%}
        {%- do known.append(node.name) -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error(
        "refresh: " ~ model_name ~ " is no model that is materialized as refresh; those are "
        ~ (known | sort | join(", ") or "none")) -%}
{%- endmacro %}

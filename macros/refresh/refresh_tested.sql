{#- The settings and tables of the refresh model that a generic test is about. -#}
{% macro refresh_tested(test, relation, type=none) -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'refresh'
        and node.alias == relation.identifier and node.schema == relation.schema -%}
        {%- set settings = heartbeat.refresh_settings(node) -%}
        {%- if type and settings.type != type -%}
            {%- do exceptions.raise_compiler_error(
                test ~ " is a test for refresh models of type " ~ type ~ ", but " ~ node.name ~ " is of type " ~ settings.type) -%}
        {%- endif -%}
        {%- if type == 'key' and not settings.history -%}
            {%- do exceptions.raise_compiler_error(
                test ~ " is a test for histories, but " ~ node.name ~ " has none, as history is false") -%}
        {%- endif -%}
        {%- do return({'settings': settings, 'tables': heartbeat.refresh_tables(relation)}) -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error(
        test ~ " is a test for refresh models, but " ~ relation ~ " is none") -%}
{%- endmacro %}

{#- The settings and tables of the refresh model that a generic test is about. -#}
{% macro refresh_tested(relation) -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'refresh'
        and node.alias == relation.identifier and node.schema == relation.schema -%}
        {%- do return({'settings': heartbeat.refresh_settings(node), 'tables': heartbeat.refresh_tables(relation)}) -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error(relation ~ " is no model that is materialized as refresh") -%}
{%- endmacro %}

{#- Refuses settings that cannot be meant in any of the project's refresh models, or says how many are right. It asks for no
    table, so that a pull request can run it. -#}
{% macro refresh_check() -%}
    {#- A hook is rendered when dbt parses, too; there are no models yet. -#}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set checked = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'refresh' -%}
        {%- do checked.append(heartbeat.refresh_settings(node)) -%}
    {%- endfor -%}
    {%- do log("refresh: the settings of " ~ checked | length ~ " models can be meant", info=true) -%}
{%- endmacro %}

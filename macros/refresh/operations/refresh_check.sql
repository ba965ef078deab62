{#- Rejects invalid settings in any of the project's refresh models, or prints how many are valid. It reads no table,
    so that a pull request can run it. -#}
{% macro refresh_check() -%}
    {#- A hook is rendered also when dbt parses, before there are models. -#}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set checked = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'refresh' -%}
        {%- do checked.append(heartbeat._refresh_settings(node)) -%}
    {%- endfor -%}
    {%- do log("refresh: the settings of " ~ checked | length ~ " models can be meant", info=true) -%}
{%- endmacro %}

{#- A table's name or folder in the one spelling in which two of them are compared. -#}
{% macro plain_name(name) -%}
    {%- if '/' in name -%}
        {%- do return(modules.re.sub('^file:/+', '/', name).rstrip('/')) -%}
    {%- endif -%}
    {%- do return(modules.re.sub('^spark_catalog[.]', '', name.replace('`', '') | lower)) -%}
{%- endmacro %}

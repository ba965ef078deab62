{#- The commits that a query returns, each as one column of JSON. -#}
{% macro commits_in(query) -%}
    {%- set commits = [] -%}
    {%- for row in heartbeat.rows_of(query) -%}
        {%- do commits.append(fromjson(row[0])) -%}
    {%- endfor -%}
    {%- do return(commits) -%}
{%- endmacro %}

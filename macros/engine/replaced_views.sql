{#- To replace a view Spark drops it and creates it, so that a query in between finds none. An altered view is the old one
    until it is the new one. It loses the comments of its columns, which no view of the local engine has. -#}
{% macro spark__create_view_as(relation, sql) %}
    {%- set existing = load_cached_relation(relation) if target.type == 'spark' else none -%}
    {%- if existing is not none and existing.is_view -%}
        alter view {{ relation }} as
            {{ sql }}
    {%- else -%}
        {{- dbt.spark__create_view_as(relation, sql) -}}
    {%- endif -%}
{% endmacro %}

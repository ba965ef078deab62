{#- The greatest value of a column, as a subselect. An empty table has none, and a comparison with NULL silently
    selects nothing: `default` replaces it, also for a table that does not exist yet. -#}
{% macro last_update(column, filter_expression=none, table=this, default=none) -%}
    {%- set is_there = not execute or table is string or load_relation(table) is not none -%}
    {%- if not is_there and default is none -%}
        {%- do exceptions.raise_compiler_error(
            "last_update: " ~ table ~ " is not there yet: ask inside of is_incremental(), or give a default") -%}
    {%- elif not is_there -%}
        ({{ default }})
    {%- else -%}
        {%- set newest = "max(" ~ column ~ ")" -%}
        (
            select {{ "coalesce(" ~ newest ~ ", " ~ default ~ ")" if default is not none else newest }}
            from {{ table }}
            {%- if filter_expression %}
            where {{ filter_expression }}
            {%- endif %}
        )
    {%- endif -%}
{%- endmacro %}

{#- A condition that is true in some partitions, by their values as literals, so that no file of another one is read. -#}
{% macro partition_filter(column, partitions) -%}
    {%- set literals = [] -%}
    {%- set conditions = [] -%}
    {%- for each in partitions -%}
        {%- if each.value is none -%}
            {%- do conditions.append(adapter.quote(column.name) ~ " is null") -%}
        {%- else -%}
            {%- do literals.append(heartbeat.seed_literal(each.value, column.type)) -%}
        {%- endif -%}
    {%- endfor -%}
    {#- Never plain `false`: Spark 4.1 does not analyse a CTE with that above a correlated `exists`. -#}
    {%- if literals or not conditions -%}
        {%- do conditions.append(adapter.quote(column.name) ~ " in (" ~ (literals | join(", ") or "null") ~ ")") -%}
    {%- endif -%}
    ({{ conditions | join(" or ") }})
{%- endmacro %}

{#- The tags that list several partitions: as many as the sensors list, and as fit into a tag. -#}
{% macro partition_tags(partitions, is_truncated) -%}
    {%- set kept = namespace(rows=[], characters=0) -%}
    {%- for values in partitions[:1000] -%}
        {%- set row = '[' ~ values | join(',') ~ ']' -%}
        {%- set kept.characters = kept.characters + row | length + 1 -%}
        {%- if kept.characters < 65000 -%}
            {%- do kept.rows.append(row) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set tags = {} -%}
    {%- if kept.rows -%}
        {%- do tags.update(partitions='[' ~ kept.rows | join(',') ~ ']') -%}
    {%- endif -%}
    {%- if is_truncated or kept.rows | length < partitions | length -%}
        {%- do tags.update(partitions_truncated='true') -%}
    {%- endif -%}
    {%- do return(tags) -%}
{%- endmacro %}

{#- Some partitions in words: the first ones, and how many more there are. -#}
{% macro partition_words(partitions) -%}
    {%- set names = [] -%}
    {%- for each in partitions[:5] -%}
        {%- do names.append(each.value | string) -%}
    {%- endfor -%}
    {{ names | join(", ") }}{{ " and " ~ (partitions | length - 5) ~ " more" if partitions | length > 5 }}
{%- endmacro %}

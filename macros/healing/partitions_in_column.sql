{#- What a model has taken by a column of its own table. A partition none of whose rows is there any more is not found. -#}
{% macro partitions_in_column(target_table, column, type) -%}
    {%- set taken = {} -%}
    {%- set value = "cast(" ~ adapter.quote(column) ~ " as " ~ type ~ ")" -%}
    {%- set query -%}
        select to_json(named_struct('value', {{ heartbeat.partition_text(value, type) }}), map('ignoreNullFields', 'false'))
        from {{ target_table }}
        group by {{ value }}
    {%- endset -%}
    {%- for fact in heartbeat.commits_in(query) -%}
        {%- do taken.update({fact.value: none}) -%}
    {%- endfor -%}
    {%- do return(taken) -%}
{%- endmacro %}

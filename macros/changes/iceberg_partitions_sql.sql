{#- SQL for the partitions that a snapshot's summary names, if the table has its writers name them. -#}
{% macro iceberg_partitions_sql() -%}
{%- set value = "url_decode(substring(part, coalesce(nullif(instr(part, '='), 0), length(part)) + 1))" -%}
array_sort(transform(
    filter(map_keys(summary), name -> startswith(name, 'partitions.')),
    name -> transform(
        split(substring(name, 12), '/'),
        part -> case
            when {{ value }} = 'null' then 'null'
            else substring(to_json(array({{ value }})), 2, length(to_json(array({{ value }}))) - 2)
        end
    )
))
{%- endmacro %}

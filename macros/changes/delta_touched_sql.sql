{#- A step of delta_commits_sql: the partitions in the file actions of a version, and whether these tell all. -#}
{% macro delta_touched_sql(partition_columns) -%}
{%- set knows_all = "size(array_except(array('" ~ partition_columns | map(attribute='name') | join("', '")
    ~ "'), coalesce(map_keys(file.partitionvalues), array()))) = 0" -%}
touched as (
    select
        version,
        {%- if partition_columns %}
        array_sort(collect_set(case
            when {{ knows_all }} then array(
                {%- for column in partition_columns %}
                {{ heartbeat.partition_as_json("file.partitionvalues['" ~ column.name ~ "']", column.type) }}
                {{- "," if not loop.last }}
                {%- endfor %}
            )
        end)) as partitions,
        bool_and({{ knows_all }}) as are_all
        {%- else %}
        cast(array() as array<array<string>>) as partitions,
        true as are_all
        {%- endif %}
    from files
    group by version
)
{%- endmacro %}

{#- Two steps of delta_commits_sql: what the file actions of a version amount to, and the partitions in them. -#}
{% macro delta_changes_sql(partition_columns) -%}
{%- set knows_all = "size(array_except(array('" ~ partition_columns | map(attribute='name') | join("', '")
    ~ "'), coalesce(map_keys(file.partitionvalues), array()))) = 0" -%}
paths as (
    select
        version,
        file.path,
        max(case when is_added then coalesce(file.deletionvector.cardinality, 0) end) as hidden_after,
        max(case when not is_added then coalesce(file.deletionvector.cardinality, 0) end) as hidden_before
    from files
    group by version, file.path
),

changes as (
    select
        version,
        bool_or(hidden_after is not null) as has_added,
        bool_or(hidden_before is not null) as has_removed,
        -- A path that comes back with a longer deletion vector. A shorter one brings rows back.
        bool_and(hidden_after is null or coalesce(hidden_after >= hidden_before, false))
        and bool_or(coalesce(hidden_after > hidden_before, false)) as only_hides_rows
    from paths
    group by version
),

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

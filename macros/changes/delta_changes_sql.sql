{#- Two steps of delta_commits_sql: what becomes of each file of a version, and what that amounts to. -#}
{% macro delta_changes_sql() -%}
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
)
{%- endmacro %}

{#- Of a refresh model of type key: a version ends before, or where, the next one of its key begins. -#}
{% test has_no_overlapping_versions(model) %}
{%- if execute %}
{%- set tested = heartbeat._refresh_tested_model('has_no_overlapping_versions', model, 'key') %}

select *
from (
    select
        {{ heartbeat._refresh_column_list(tested.settings.key) }},
        s_effective_from,
        s_effective_to,
        lead(s_effective_from) over (
            partition by {{ heartbeat._refresh_column_list(tested.settings.key) }}
            order by s_effective_from, s_effective_to nulls last
        ) as next_from
    from {{ tested.tables.history }}
)
where
    s_effective_to < s_effective_from
    or next_from < coalesce(s_effective_to, timestamp'9999-12-31')
{%- endif %}

{% endtest %}

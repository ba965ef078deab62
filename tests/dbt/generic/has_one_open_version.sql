{#- Of a refresh model of type key: every key has one version in the history that is open, deleted or not. -#}
{% test has_one_open_version(model) %}
{%- if execute %}
{%- set tested = heartbeat._refresh_tested_model('has_one_open_version', model, 'key') %}

select
    {{ heartbeat._refresh_column_list(tested.settings.key) }},
    count_if(s_effective_to is null) as open_count
from {{ tested.tables.history }}
group by
    {{ heartbeat._refresh_column_list(tested.settings.key) }}
having
    count_if(s_effective_to is null) != 1
{%- endif %}

{% endtest %}

{#- Of a refresh model: each target row comes from a batch that counts, and none has more rows there than it brought. -#}
{% test has_counts_that_add_up(model) %}
{%- if execute %}
{%- set tested = heartbeat._refresh_tested_model('has_counts_that_add_up', model) %}
{%- set tables = tested.tables %}

select
    hub.s_input_id,
    metrics.state,
    metrics.record_count,
    hub.row_count
from (
    select
        s_input_id,
        count(*) as row_count
    from {{ tables.hub }}
    {{ "where not s_deleted_flag" if tested.settings["deletes.mode"] == "soft" }}
    group by s_input_id
) as hub
left outer join {{ tables.metrics }} as metrics
    on hub.s_input_id = metrics.s_input_id
where
    metrics.s_input_id is null
    or metrics.state != 'COMPLETE'
    or hub.row_count > metrics.record_count
{%- endif %}

{% endtest %}

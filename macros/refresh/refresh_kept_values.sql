{#- What a key had last before it was deleted, as SQL: the hub keeps that of keys that are only flagged as deleted. -#}
{% macro refresh_kept_values(load) -%}
    {%- if load.settings['deletes.mode'] == 'soft' -%}
        last_value(
            if(
                not received.s_deleted_flag and array_contains(folded.state.versions, received.s_input_id),
                struct({{ heartbeat.refresh_names(load.columns | map(attribute='name'), 'received') }}),
                null
            ),
            true
        ) over (
            partition by {{ heartbeat.refresh_names(load.settings.key, 'received') }}
            order by received.s_input_id rows between unbounded preceding and current row
        )
    {%- else -%}
        cast(null as boolean)
    {%- endif -%}
{%- endmacro %}

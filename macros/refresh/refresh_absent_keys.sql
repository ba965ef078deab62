{#- The keys that are live in the hub and that no staged row of a complete extract has, as a query. A row that is rejected
    for its date still shows that its key is there. -#}
{% macro refresh_absent_keys(load, batch) -%}
    select {{ heartbeat.refresh_names(load.settings.key, 'hub') }}
    from {{ load.tables.hub }} as hub
    left anti join (
        select {{ heartbeat.refresh_names(load.settings.key) }}
        from {{ load.tables.staging }}
        where s_batch <=> {{ heartbeat.seed_literal(batch.batch, 'string') }}
    ) as present
        on {{ heartbeat.refresh_same_key(load.settings, 'hub', 'present') }}
    {%- if load.settings['deletes.mode'] == 'soft' %}
    where not hub.s_deleted_flag
    {%- endif %}
{%- endmacro %}

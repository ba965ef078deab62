{#- What is known of the keys that are wanted, as a query: from few columns of the hub, and of the open versions in the
    history those that say that a key is deleted. -#}
{% macro refresh_known_keys(load, batches) -%}
    {%- set settings = load.settings -%}
    {%- set keys = heartbeat.refresh_names(settings.key) -%}
    select {{ keys }}, s_hash, s_update_timestamp, false as s_deleted_flag
    from {{ load.tables.hub }} as hub
    left semi join wanted
        on {{ heartbeat.refresh_same_key(settings, 'hub', 'wanted') }}
    where {{ heartbeat.refresh_in_bounds(load, batches, 'hub') }}
    {%- if settings['deletes.mode'] == 'soft' %}
        and not hub.s_deleted_flag
    {%- endif %}
    {%- if settings['deletes.when'] %}
    union all
    select {{ keys }}, s_hash, s_update_timestamp, s_deleted_flag
    from {{ load.tables.history }} as history
    left semi join wanted
        on {{ heartbeat.refresh_same_key(settings, 'history', 'wanted') }}
    where history.s_deleted_flag and history.s_effective_to is null
        and {{ heartbeat.refresh_in_bounds(load, batches, 'history') }}
    {%- endif %}
{%- endmacro %}

{#- The keys whose history a batch changes before its end, as a query: it has a row that is older than what is known, or one
    that says that what is known was true earlier. -#}
{% macro refresh_late_keys(load, batch) -%}
    {%- set settings = load.settings -%}
    select {{ heartbeat.refresh_names(settings.key, 'given') }}
    from {{ load.tables.batches }} as given
    inner join {{ load.tables.history }} as history
        on {{ heartbeat.refresh_same_key(settings, 'given', 'history') }}
    where
        given.s_input_id = {{ batch.id }}
        and given.s_record_status_code in ('O', 'U')
        and given.s_update_timestamp < history.s_effective_from
        and history.s_effective_to is null
    union
    select {{ heartbeat.refresh_names(settings.key) }}
    from {{ load.tables.batches }}
    where s_input_id = {{ batch.id }} and s_record_status_code = 'O'
{%- endmacro %}

{#- The staged rows of one batch, each with its code, as a query: compared with the last row of its key that was
    received, which is in the hub, or in the history when the key is deleted. -#}
{% macro refresh_classified_by_key(load, batch) -%}
    {%- set settings = load.settings -%}
    with ranked as (
        select
            staged.*,
            row_number() over (
                partition by s_is_rejected, {{ heartbeat.refresh_names(settings.key) }}
                order by s_update_timestamp desc, s_deleted_flag desc,
                {%- for column in settings.tie_breaker %} {{ adapter.quote(column) }} desc, {%- endfor %} s_row_num desc
            ) as s_rank
        from (
            {{ heartbeat.refresh_staged_rows(load, batch) }}
            {%- if settings['deletes.complete'] %}
            union all
            {{ heartbeat.refresh_absent_rows(load, batch) }}
            {%- endif %}
        ) as staged
    ),

    wanted as (
        select {{ heartbeat.refresh_names(settings.key) }} from ranked where s_rank = 1 and not s_is_rejected
    ),

    known as (
        {{ heartbeat.refresh_known_keys(load) }}
    )

    select
        ranked.* except (s_record_status_code),
        {{ heartbeat.refresh_code(settings) }} as s_record_status_code
    from ranked
    left outer join known
        on {{ heartbeat.refresh_same_key(settings, 'ranked', 'known') }}
{%- endmacro %}

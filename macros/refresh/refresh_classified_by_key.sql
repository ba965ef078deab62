{#- The staged rows of one batch, each with its code, as a query: compared with the last row of its key that was
    received, which is in the hub, or in the history when the key is deleted. What a batch does not need is left out:
    a first one has nothing to be compared with, and one without a key twice has no row to discard. -#}
{% macro refresh_classified_by_key(load, batch) -%}
    {%- set settings, is_first = load.settings, heartbeat.refresh_is_first(load, batch) -%}
    with staged as (
        {{ heartbeat.refresh_staged_rows(load, batch) }}
        {%- if settings['deletes.complete'] and not is_first %}
        union all
        {{ heartbeat.refresh_absent_rows(load, batch) }}
        {%- endif %}
    ),

    ranked as (
        select staged.*, {{ "1" if batch.is_unique else heartbeat.refresh_rank(settings) }} as s_rank from staged
    )
    {%- if not is_first %},

    wanted as (
        select {{ heartbeat.refresh_names(settings.key) }} from staged where not s_is_rejected
    ),

    known as (
        {{ heartbeat.refresh_known_keys(load) }}
    )
    {%- endif %}

    select
        ranked.* except (s_record_status_code),
        {{ heartbeat.refresh_code(settings, is_first) }} as s_record_status_code
    from ranked
    {%- if not is_first %}
    left outer join known
        on {{ heartbeat.refresh_same_key(settings, 'ranked', 'known') }}
    {%- endif %}
{%- endmacro %}

{#- The staged rows of batches, each with its code, as a query: compared with the last row of its key that was received,
    which is in the hub, in the history when the key is deleted, or in a batch before it. What a batch does not need is left
    out: a first one has nothing to be compared with, and one without a key twice has no row to discard. -#}
{% macro refresh_classified_by_key(load, batches) -%}
    {%- set settings, is_first = load.settings, heartbeat.refresh_is_first(load, batches[0]) -%}
    with staged as (
        {{ heartbeat.refresh_staged_rows(load, batches) }}
        {%- if settings['deletes.complete'] and not is_first %}
        union all
        {{ heartbeat.refresh_absent_rows(load, batches[0]) }}
        {%- endif %}
    ),

    ranked as (
        select staged.*, {{ "1" if batches[0].is_unique else heartbeat.refresh_rank(load) }} as s_rank from staged
    )
    {%- if not is_first %},

    wanted as (
        select {{ heartbeat.refresh_names(settings.key) }} from staged where not s_is_rejected
    ),

    known as (
        {{ heartbeat.refresh_known_keys(load, batches) }}
    ),

    compared as (
        select ranked.*, {{ heartbeat.refresh_known_before(settings, batches) }} as s_known
        from ranked
        left outer join known
            on {{ heartbeat.refresh_same_key(settings, 'ranked', 'known') }}
    )
    {%- endif %}

    select
        ranked.* except (s_record_status_code {{- "" if is_first else ", s_known" }}),
        {{ heartbeat.refresh_code(settings, is_first, 'ranked.s_known') }} as s_record_status_code
    from {{ "ranked" if is_first else "compared as ranked" }}
{%- endmacro %}

{#- What batches do to the history of their keys, as a query: the open version is closed, or touched where a delete is heard
    again (`close`), and those that follow are opened (`open`, or `keep` for the delete of a key that nobody may have known). -#}
{% macro refresh_history_steps(load, batches) -%}
    {%- set by_key = "partition by " ~ heartbeat.refresh_names(load.settings.key) -%}
    with placed as (
        select
            received.*,
            row_number() over ({{ by_key }} order by s_input_id) as s_place,
            count_if(s_kind = 'version') over ({{ by_key }} order by s_input_id) as s_version,
            min(if(s_kind = 'version', s_update_timestamp, null)) over ({{ by_key }}) as s_closed_at,
            min(if(s_kind = 'version', s_update_timestamp, null)) over (
                {{ by_key }} order by s_input_id rows between 1 following and unbounded following
            ) as s_next_at
        from ({{ heartbeat.refresh_rows_of_history(load, batches) }}) as received
    ),

    touched as (
        select
            placed.*,
            max(if(s_kind = 'touch', s_update_timestamp, null)) over ({{ by_key }}, s_version) as s_touched_at
        from placed
    )

    select
        touched.* except (s_update_timestamp, s_touched_at),
        greatest(s_update_timestamp, s_touched_at) as s_update_timestamp,
        if(s_version = 0, s_touched_at, null) as s_touched_at,
        s_update_timestamp as s_effective_from,
        if(s_step = 'close', s_closed_at, s_next_at) as s_effective_to,
        s_step
    from touched
    lateral view explode(array_compact(array(
        case when s_kind = 'version' then 'open' when s_kind = 'delete' and s_place = 1 then 'keep' end,
        if(s_place = 1 and coalesce(s_closed_at, if(s_version = 0, s_touched_at, null)) is not null, 'close', null)
    ))) as s_step
{%- endmacro %}

{#- The instant of a trigger's slot by its number: computed from the start, never from the slot before.
    Minutes and hours are lengths of time; days, weeks and months are those of the zone's calendar. -#}
{% macro trigger_slot(relation, number) -%}
    if(
        {{ relation }}.step_seconds is not null,
        timestamp_seconds(
            unix_seconds({{ relation }}.start_at)
            + {{ number }} * {{ relation }}.step_seconds
        ),
        to_utc_timestamp(
            {{ relation }}.start_wall
            + make_interval(
                0,
                cast({{ number }} * {{ relation }}.step_months as int),
                0,
                cast({{ number }} * {{ relation }}.step_days as int)
            ),
            {{ relation }}.time_zone
        )
    )
{%- endmacro %}

{#- The instant of a trigger's slot by its number: computed from the start, never from the slot before. Minutes and
    hours are lengths of time; days, weeks and months are those of the zone's calendar. -#}
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

{#- How many months, days or seconds an amount of units is: one struct, with nulls for the other two, and for all of
    them where the amount is too large. -#}
{% macro units_of_time(amount, unit) -%}
    named_struct(
        'months', case when {{ unit }} rlike '^MONTH' then try_cast({{ amount }} as int) end,
        'days', case
            when {{ unit }} rlike '^DAY' then try_cast({{ amount }} as int)
            when {{ unit }} rlike '^WEEK' then try_cast(try_multiply({{ amount }}, 7) as int)
        end,
        'seconds', case
            when {{ unit }} rlike '^MINUTE' then try_multiply({{ amount }}, 60L)
            when {{ unit }} rlike '^HOUR' then try_multiply({{ amount }}, 3600L)
        end
    )
{%- endmacro %}

{#- True for the name of a time zone that this engine recognizes; functions fail on any other name. -#}
{% macro is_time_zone(name) -%}
    (
        {{ name }} = 'UTC'
        or try_cast(concat('2000-01-01 00:00:00 ', {{ name }}) as timestamp) is not null
    )
{%- endmacro %}

{#- Where an evaluation of a trigger ends, as JSON: where the next one continues, and what suffices to skip the trigger
    (int_trigger_cursors reads it). -#}
{% macro trigger_position(trigger) -%}
    to_json(
        named_struct(
            'opened_through', {{ trigger }}.opened_through,
            'waiting',
            coalesce(transform({{ trigger }}.waiting, each -> each.slot), array()),
            'missing', transform({{ trigger }}.waiting, each -> each.missing),
            'expires', transform({{ trigger }}.waiting, each -> each.expires_at),
            'looked_through', {{ trigger }}.looked_through,
            'next_due_at', {{ trigger }}.next_due_at,
            'pace_key', {{ trigger }}.pace_key,
            'is_ready', nullif(
                exists({{ trigger }}.waiting, each -> cardinality(each.missing) = 0), false
            )
        ),
        map('timestampFormat', "yyyy-MM-dd'T'HH:mm:ss'Z'")
    )
{%- endmacro %}

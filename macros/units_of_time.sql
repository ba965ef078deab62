{#- How many months, days or seconds an amount of units is: one struct, with nulls for the other two. -#}
{% macro units_of_time(amount, unit) -%}
    named_struct(
        'months', case when {{ unit }} rlike '^MONTH' then cast({{ amount }} as int) end,
        'days', case
            when {{ unit }} rlike '^DAY' then cast({{ amount }} as int)
            when {{ unit }} rlike '^WEEK' then cast({{ amount }} * 7 as int)
        end,
        'seconds', case
            when {{ unit }} rlike '^MINUTE' then cast({{ amount }} * 60 as bigint)
            when {{ unit }} rlike '^HOUR' then cast({{ amount }} * 3600 as bigint)
        end
    )
{%- endmacro %}

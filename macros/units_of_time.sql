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

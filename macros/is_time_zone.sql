{#- True for the name of a time zone that this engine knows; functions that are given another one fail. -#}
{% macro is_time_zone(name) -%}
    (
        {{ name }} = 'UTC'
        or try_cast(concat('2000-01-01 00:00:00 ', {{ name }}) as timestamp) is not null
    )
{%- endmacro %}

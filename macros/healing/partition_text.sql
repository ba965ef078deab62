{#- The value of a partition as text in SQL; an instant in UTC, whatever the time zone of the session. -#}
{% macro partition_text(value, type) -%}
    {%- if type == 'timestamp' -%}
        get_json_object(to_json(
            named_struct('value', {{ value }}), map('timeZone', 'UTC', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX')
        ), '$.value')
    {%- else -%}
        cast({{ value }} as string)
    {%- endif -%}
{%- endmacro %}

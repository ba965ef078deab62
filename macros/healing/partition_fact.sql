{#- What is known of a partition, as JSON in SQL: its value, its place in time for a look-back, and what changes when its
    data does: the number of its rows, and which files they are in. -#}
{% macro partition_fact(value, type, row_count, files) -%}
    {%- set is_time = type in ('timestamp', 'timestamp_ntz', 'date', 'string') -%}
    to_json(named_struct(
        'value', {{ heartbeat.partition_text(value, type) }},
        'at', {{ "unix_seconds(try_cast(" ~ value ~ " as timestamp))" if is_time else "cast(null as bigint)" }},
        'stamp', concat(coalesce(cast({{ row_count }} as string), ''), '/', {{ files }})
    ), map('ignoreNullFields', 'false')) as fact
{%- endmacro %}

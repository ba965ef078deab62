{#- True for an event with this partition, all of these tags and this operation. -#}
{% macro event_condition(event, partition=none, tags=none, operation=none) -%}
    {%- set operations = ['APPEND', 'DELETE', 'UPDATE'] -%}
    {%- if operation is not none and operation | trim | upper not in operations -%}
        {{ exceptions.raise_compiler_error("operation '" ~ operation ~ "' is none of " ~ operations | join(', ')) }}
    {%- endif -%}
    true
    {%- if operation is not none %}
        and {{ event }}.operation_type = '{{ operation | trim | upper }}'
    {%- endif %}
    {%- for key, value in (tags or {}).items() %}
        and try_element_at({{ event }}.tags, {{ seed_literal(key, 'string') }}) = {{ seed_literal(value, 'string') }}
    {%- endfor %}
    {%- if partition is not none %}
        and {{ has_partition(event, partition) }}
    {%- endif %}
{%- endmacro %}

{#- The column with the instant of an event by which a range of time is meant. -#}
{% macro event_instant(by) -%}
    {%- set columns = {'registration': 'event_ts', 'snapshot': 'snapshot_ts'} -%}
    {%- if by not in columns -%}
        {{ exceptions.raise_compiler_error("by '" ~ by ~ "' is none of registration and snapshot") }}
    {%- endif -%}
    {{ columns[by] }}
{%- endmacro %}

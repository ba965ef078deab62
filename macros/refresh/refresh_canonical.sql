{#- A value in a form that does not change when its type is widened, or with the time zone of the session. -#}
{% macro refresh_canonical(quoted, type) -%}
    {%- if type in ('tinyint', 'smallint', 'int') -%}
        cast({{ quoted }} as bigint)
    {%- elif type == 'float' -%}
        cast({{ quoted }} as double)
    {%- elif type == 'date' -%}
        cast({{ quoted }} as timestamp_ntz)
    {%- elif type.startswith('decimal') -%}
        {%- if type.endswith(',0)') -%}
            cast({{ quoted }} as string)
        {%- else -%}
            trim(trailing '.' from trim(trailing '0' from cast({{ quoted }} as string)))
        {%- endif -%}
    {%- elif type.startswith('map') -%}
        {{ heartbeat.refresh_canonical("array_sort(map_entries(" ~ quoted ~ "))", 'array') }}
    {%- elif type.startswith('array') or type.startswith('struct') -%}
        to_json({{ quoted }}, map(
            'ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'))
    {%- else -%}
        {{ quoted }}
    {%- endif -%}
{%- endmacro %}

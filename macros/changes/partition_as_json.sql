{#- A partition's value, which is text in a log or a folder's name, as JSON text in SQL: numbers as numbers,
    nothing as null. The sensors write the same. -#}
{% macro partition_as_json(value, type) -%}
    {%- set number = "^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$" -%}
    {%- set quoted = "to_json(array(" ~ value ~ "))" -%}
    case
        when coalesce({{ value }}, '') = '' then 'null'
        {%- if type in ('tinyint', 'smallint', 'int', 'bigint') %}
        when {{ value }} rlike '{{ number }}' then cast(cast({{ value }} as decimal(38, 0)) as string)
        {%- elif type.startswith(('decimal', 'float', 'double')) %}
        when {{ value }} rlike '{{ number }}' then {{ value }}
        {%- elif type == 'boolean' %}
        when lower({{ value }}) in ('true', 'false') then lower({{ value }})
        {%- endif %}
        else substring({{ quoted }}, 2, length({{ quoted }}) - 2)
    end
{%- endmacro %}

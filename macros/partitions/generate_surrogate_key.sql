{#- One key out of several columns, each as canonical JSON, so that NULL differs from any text and no text runs into
    the next. A decimal is written without its trailing zeros, whatever its scale. -#}
{% macro generate_surrogate_key(columns) -%}
    {%- set columns = [columns] if columns is string else columns -%}
    {%- if not columns -%}
        {%- do exceptions.raise_compiler_error("generate_surrogate_key: columns is empty: name those that make a row") -%}
    {%- endif -%}
    md5(concat_ws(','
    {%- for column in columns %},
        case
            when {{ column }} is null or typeof({{ column }}) not like 'decimal%'
                then {{ heartbeat._refresh_canonical("array(" ~ column ~ ")", 'array') }}
            when typeof({{ column }}) like 'decimal%,0)'
                then concat('[', {{ heartbeat._refresh_canonical(column, 'decimal(38,0)') }}, ']')
            else concat('[', {{ heartbeat._refresh_canonical(column, 'decimal(38,1)') }}, ']')
        end
    {%- endfor %}
    ))
{%- endmacro %}

{#- Refuses a value that a setting cannot have; `legal` is a list of words, or the name of a kind of value. -#}
{% macro refresh_check_value(what, value, legal) -%}
    {%- set is_list = value is sequence and value is not string and value is not mapping -%}
    {%- set kinds = {
        'column': (value is string, "the name of one column"),
        'columns': (value is string or is_list and value | reject('string') | list == [], "a list of columns"),
        'text': (value is string, "text"),
        'value': (value is string or value is integer, "text or a whole number"),
        'number': (value is number and value is not boolean and value >= 0, "a number from 0"),
        'boolean': (value is boolean, "true or false"),
    } -%}
    {%- if legal is string -%}
        {%- set fits, wanted = kinds[legal] -%}
    {%- else -%}
        {%- set fits, wanted = (value in legal, "one of " ~ legal | join(', ')) -%}
    {%- endif -%}
    {%- if value is not none and not fits -%}
        {%- do exceptions.raise_compiler_error(what ~ " is " ~ value ~ ", but must be " ~ wanted) -%}
    {%- endif -%}
{%- endmacro %}

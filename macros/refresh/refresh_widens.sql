{#- Whether every value of a type has its like in another type, so that Delta can widen a column in place and the hashes of
    its rows stay what they are. -#}
{% macro refresh_widens(narrow, wide) -%}
    {%- set whole = ['tinyint', 'smallint', 'int', 'bigint'] -%}
    {%- if narrow in whole and wide in whole -%}
        {%- do return(whole.index(narrow) < whole.index(wide)) -%}
    {%- elif narrow.startswith('decimal(') and wide.startswith('decimal(') -%}
        {%- set digits, scale = narrow[8:-1].split(',') | map('int') -%}
        {%- set more_digits, more_scale = wide[8:-1].split(',') | map('int') -%}
        {%- do return(more_scale >= scale and more_digits - more_scale >= digits - scale and narrow != wide) -%}
    {%- endif -%}
    {%- do return((narrow, wide) in [('float', 'double'), ('date', 'timestamp_ntz')]) -%}
{%- endmacro %}

{#- Why the range of a batch cannot be meant, as a sentence: one wrong date would replace everything. -#}
{% macro refresh_refusal_of_range(settings, batch, live) -%}
    {%- set seen = (batch.observed or []) | reject('none') | map('int') | list -%}
    {%- if seen and (seen[0] < batch.range_from or seen[1] > batch.range_to) -%}
        {%- do return("it has rows whose " ~ settings.column ~ " is outside of the range that was declared, from "
            ~ settings.range_from ~ " to before " ~ settings.range_to) -%}
    {%- elif not live -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set unit, word, least = (86400000000, ' days', 366) if settings.type == 'timestamp' else (1, '', none) -%}
    {%- set most = settings.max_range if settings.max_range is not none else least -%}
    {%- set span = batch.range_to | int - batch.range_from | int -%}
    {%- if most is not none and span > most * unit -%}
        {%- do return("its rows span " ~ span // unit ~ word ~ " in " ~ settings.column
            ~ ", all of which they would replace, and max_range is " ~ most) -%}
    {%- endif -%}
    {%- set reached = live | rejectattr('range_to', 'none') | map(attribute='range_to') | map('int') | list -%}
    {%- if settings.max_rewind is defined and settings.max_rewind is not none and reached
        and batch.range_to | int < reached | max - settings.max_rewind -%}
        {%- do return("its greatest " ~ settings.column ~ " is " ~ batch.range_to ~ " after " ~ reached | max
            ~ ", and max_rewind is " ~ settings.max_rewind) -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- A condition by which Delta knows the files that may have keys of some batches: the key lies between the least and the greatest
    one of a batch. It is true of all rows where nobody knows these. -#}
{% macro refresh_in_bounds(load, batches, qualifier) -%}
    {%- set columns, ranges = heartbeat.refresh_bounded_keys(load), [] -%}
    {%- for batch in batches -%}
        {%- set parts = [] -%}
        {%- for column in columns if batch.get('bounds') -%}
            {%- set least, greatest = batch.bounds[loop.index0] -%}
            {%- if least is not none -%}
                {%- do parts.append(qualifier ~ "." ~ column.quoted ~ " between " ~ column.literal | format(least) ~ " and "
                    ~ column.literal | format(greatest)) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- do ranges.append(parts | join(" and ") or "true") -%}
    {%- endfor -%}
    {%- do return("(" ~ ranges | join(" or ") ~ ")") -%}
{%- endmacro %}

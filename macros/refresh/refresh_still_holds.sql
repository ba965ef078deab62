{#- Whether a batch equals a live one of which everything still holds, so that to take it would change nothing. What was corrected
    may be set back: a batch equal to one whose dates, or whose range, a later one has touched is new data. Where no dates limit
    what a batch may change, that is every later one, except for `none`, of which no batch changes another. -#}
{% macro refresh_still_holds(settings, batch, live) -%}
    {%- for earlier in live if earlier.fingerprint == batch.fingerprint -%}
        {%- set later = live | selectattr('id', 'gt', earlier.id) | list if settings.type != 'none' else [] -%}
        {%- set touching = [] -%}
        {%- for other in later -%}
            {%- set are_apart = earlier.range_from is not none and other.range_from is not none
                and settings.unchanged_newer != 'skip'
                and (other.range_from | int > earlier.range_to | int or other.range_to | int < earlier.range_from | int) -%}
            {%- if not are_apart -%}
                {%- do touching.append(other.id) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if not touching -%}
            {%- do return(true) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(false) -%}
{%- endmacro %}

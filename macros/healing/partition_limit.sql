{#- A limit that a variable of the run overrules; `all` is no limit. -#}
{% macro partition_limit(name, given, least) -%}
    {%- set said = var(name, none) -%}
    {%- set limit = said if said is not none else given -%}
    {%- if limit is none or limit | string | lower == 'all' -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- if not modules.re.fullmatch('[0-9]+', limit | string) or limit | int < least -%}
        {%- do exceptions.raise_compiler_error(
            "pending_partitions: " ~ name ~ " is '" ~ limit ~ "': give a whole number from " ~ least ~ " on, or all") -%}
    {%- endif -%}
    {%- do return(limit | int) -%}
{%- endmacro %}

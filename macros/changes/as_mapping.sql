{#- A map in an answer: adapters hand it over as a mapping, as pairs, or as JSON of either. -#}
{% macro as_mapping(value) -%}
    {%- set read = fromjson(value) if value is string else value -%}
    {%- do return(dict(read or {})) -%}
{%- endmacro %}

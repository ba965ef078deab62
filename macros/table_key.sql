{#- A table's name as a number to join by: names in a catalog are compared without backticks, case and
    the session's own catalog; a path is compared as it stands. -#}
{% macro table_key(name) -%}
    xxhash64(
        if(
            contains({{ name }}, '/'),
            {{ name }},
            regexp_replace(
                lower(replace({{ name }}, '`', '')), '^spark_catalog[.]', ''
            )
        )
    )
{%- endmacro %}

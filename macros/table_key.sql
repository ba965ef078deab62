{#- A table's name as a number to join by: names in a catalog are compared without backticks, case and
    the session's own catalog; a path is compared as it stands. harness/names.py says the same. -#}
{% macro table_key(name) -%}
    xxhash64(
        if(
            contains({{ name }}, '/'),
            regexp_replace(
                replace(trim({{ name }}), '`', ''),
                '(?i)^((delta|parquet|iceberg)[.])?(file:(//)?(?=/))?|/+$',
                ''
            ),
            regexp_replace(
                lower(replace(trim({{ name }}), '`', '')),
                '^spark_catalog[.](?=[^.]+[.])',
                ''
            )
        )
    )
{%- endmacro %}

{#- What the spellings of one table's name have in common: a catalog does not tell capitals, and its own
    name may be left out; a path is what it says. The same as table_key in harness/platform/sql_names.py. -#}
{% macro table_spelling(name) -%}
    {%- set plain -%}
        regexp_replace(trim({{ name }}), '^(?i)(delta|parquet|iceberg)[.](?=`?[/a-z0-9_]*[/:])', '')
    {%- endset -%}
    case
        when contains({{ plain }}, '/')
            then regexp_replace(
                regexp_replace(replace({{ plain }}, '`', ''), '^(?i)file:(//)?(?=/)', ''),
                '(?<=.)/+$',
                ''
            )
        else regexp_replace(
            lower(regexp_replace({{ plain }}, '`([^`.]*)`', '$1')),
            '^spark_catalog[.](?=(`[^`]*`|[^`.]+)[.])',
            ''
        )
    end
{%- endmacro %}

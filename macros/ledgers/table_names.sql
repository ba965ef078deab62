{#- A table's name as a number to join by: all spellings of one table have the same. -#}
{% macro table_key(name) -%}
    xxhash64({{ heartbeat._table_spelling(name) }})
{%- endmacro %}

{#- The normal form of a table's name: a catalog ignores case, and its own name may be left out; a path stays as it
    is. The same as table_key in harness/platform/sql_names.py. -#}
{% macro _table_spelling(name) -%}
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

{#- The normal form of a table's name or folder, computed in Jinja: that of table_key in harness/platform/sql_names.py. -#}
{% macro _plain_name(name) -%}
    {%- set name = modules.re.sub('(?i)^(?:delta|parquet|iceberg)[.](?=`?[/\\w]*[/:])', '', name | trim) -%}
    {%- if '/' in name -%}
        {%- do return(modules.re.sub('(?i)^file:(?://)?(?=/)', '', name.replace('`', '')).rstrip('/') or '/') -%}
    {%- endif -%}
    {%- set plain = modules.re.sub('`([^`.]*)`', '\\1', name) | lower -%}
    {%- do return(modules.re.sub('^spark_catalog[.](?=(?:`[^`]*`|[^`.]+)[.])', '', plain)) -%}
{%- endmacro %}

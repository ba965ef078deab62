{#- Rows without a former state, each as an insertion: all of the table, those of some partitions, or none. -#}
{% macro gained_rows_sql(relation, table, range) -%}
select *, 'insert' as _change_type
from {{ relation }}
{%- if range.is_nothing %}
where false
{%- elif range.partitions is defined %}
where false
    {%- for values in range.partitions %}
    or (
        {%- for column in table.partition_columns %}
        {%- set value = values[loop.index0] %}
        {{ "and " if not loop.first -}}
        {{ adapter.quote(column.name) }} <=> cast(
            {{- "null" if value is none else heartbeat.seed_literal(value, 'string') }} as {{ column.type }})
        {%- endfor %}
    )
    {%- endfor %}
{%- elif range.until is not none %}
version as of {{ range.until | int }}
{%- endif %}
{%- endmacro %}

{#- Each row that came with 1 and each that went with -1: from the change data feed, else from both states. -#}
{% macro signed_rows_sql(relation, range, columns) -%}
{%- set names = columns | map(attribute='quoted') | join(", ") -%}
{%- if range.by_feed %}
    select {{ names }}, if(_change_type in ('insert', 'update_postimage'), 1, -1) as _change_sign
    from table_changes('{{ relation }}', {{ range.since | int + 1 }}, {{ range.until | int }})
{%- else %}
    select {{ names }}, 1 as _change_sign
    from {{ relation }} version as of {{ range.until | int }}
    union all
    select
        {%- for column in columns %}
        {{ column.quoted if column.is_old else "cast(null as " ~ column.type ~ ")" }},
        {%- endfor %}
        -1
    from {{ relation }} version as of {{ range.since | int }}
{%- endif %}
{%- endmacro %}

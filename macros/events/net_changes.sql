{#- The net changes between two states of a table, from either source: a row that came and went is unchanged. With
    keys, a removed row and an added row of one key are two states of it. -#}
{% macro _net_changes_sql(relation, range, columns, keys, preimages) -%}
{%- set names = columns | map(attribute='quoted') | join(", ") -%}
with

signed_rows as (
    {{ heartbeat._signed_rows_sql(relation, range, columns) }}
),

counted_rows as (
    select {{ names }}, sum(_change_sign) as _change_sign
    from signed_rows
    group by {{ names }}
    having sum(_change_sign) <> 0
),

changed as (
    select {{ names }}, if(_change_sign > 0, 'insert', 'delete') as _change_type
    from counted_rows
    lateral view explode(sequence(1, cast(abs(_change_sign) as int))) each_row as _copy
)
{%- if keys %},

{{ heartbeat._updates_by_key_sql(columns, keys, preimages) }}
{%- else %}

select * from changed
{%- endif %}
{%- endmacro %}

{#- Each added row with 1 and each removed row with -1: from the change data feed, else from both states. -#}
{% macro _signed_rows_sql(relation, range, columns) -%}
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

{#- The end of _net_changes_sql with keys: of a key on both sides, the removed row is the earlier state of the added
    row. -#}
{% macro _updates_by_key_sql(columns, keys, preimages) -%}
{%- set names = columns | map(attribute='quoted') | join(", ") -%}
{%- set key_names = columns | selectattr('name', 'in', keys) | map(attribute='quoted') | join(", ") -%}
of_keys as (
    select *,
        min(_change_type) over (partition by {{ key_names }})
        <> max(_change_type) over (partition by {{ key_names }}) as _is_update
    from changed
)

select {{ names }},
    case
        when not _is_update then _change_type
        when _change_type = 'insert' then 'update_postimage'
        else 'update_preimage'
    end as _change_type
from of_keys
{%- if not preimages %}
where not (_is_update and _change_type = 'delete')
{%- endif %}
{%- endmacro %}

{#- The columns of the later state of a table, and which of them the earlier state had; `none` if the type of a column
    has changed. -#}
{% macro _columns_to_compare(relation, range, keys) -%}
    {%- set query = "describe query select * from " ~ relation ~ " version as of " -%}
    {%- set before = dict(heartbeat._query_rows(query ~ range.since, 2)) -%}
    {%- set columns = [] -%}
    {%- for name, type in heartbeat._query_rows(query ~ range.until, 2) -%}
        {%- if before.get(name, type) != type -%}
            {%- do return(none) -%}
        {%- endif -%}
        {%- do columns.append(
            {'name': name, 'quoted': adapter.quote(name), 'type': type, 'is_old': name in before}) -%}
    {%- endfor -%}
    {%- set names = columns | map(attribute='name') | list -%}
    {%- for key in keys if key not in names -%}
        {%- do exceptions.raise_compiler_error(
            "changed_rows: the key " ~ key ~ " is no column of " ~ relation ~ "; it has " ~ names | join(', ')) -%}
    {%- endfor -%}
    {%- for name in ['_change_type', '_change_sign'] if name in names -%}
        {%- do exceptions.raise_compiler_error(
            "changed_rows: " ~ relation ~ " has a column " ~ name ~ ", a name that its changes need: rename it") -%}
    {%- endfor -%}
    {%- do return(columns) -%}
{%- endmacro %}

{#- Rows without a former state, each as an insertion: the whole table, some partitions, or none. -#}
{% macro _gained_rows_sql(relation, table, range) -%}
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
            {{- "null" if value is none else heartbeat._sql_literal(value, 'string') }} as {{ column.type }})
        {%- endfor %}
    )
    {%- endfor %}
{%- elif range.until is not none %}
version as of {{ range.until | int }}
{%- endif %}
{%- endmacro %}

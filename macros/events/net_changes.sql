{#- The net changes between two states of a table: a row that came and went is unchanged. With keys, a removed row and
    an added row of one key are two states of it. Python executes the same text, so nothing here queries a database
    (harness/toolkit/changes/net_changes.py). -#}
{% macro _net_changes_sql(signed_rows, columns, keys, preimages) -%}
{%- set names = columns | map(attribute='quoted') | join(", ") -%}
with

signed_rows as (
    {{ signed_rows }}
),

counted_rows as (
    select {{ names }}, sum(_change_sign) as _change_sign
    from signed_rows
    group by {{ names }}
    having sum(_change_sign) <> 0
),

-- The row occurs as often as it was added or removed; no column of a table may have either name.
changed as (
    select {{ names }}, if(_change_sign > 0, 'insert', 'delete') as _change_type
    from counted_rows
    lateral view explode(sequence(1, abs(_change_sign))) each_row as _change_type
)
{%- if keys %},

{{ heartbeat._updates_by_key_sql(columns, keys) }}

select * from by_key
{%- if not preimages %}
where _change_type <> 'update_preimage'
{%- endif %}
{%- else %}

select * from changed
{%- endif %}
{%- endmacro %}

{#- A CTE of _net_changes_sql: of a key on both sides, the removed row is the earlier state of the added row. -#}
{% macro _updates_by_key_sql(columns, keys) -%}
{%- set key_names = columns | selectattr('name', 'in', keys) | map(attribute='quoted') | join(", ") -%}
by_key as (
    select {{ columns | map(attribute='quoted') | join(", ") }},
        case
            when min(_change_type) over (partition by {{ key_names }})
                = max(_change_type) over (partition by {{ key_names }}) then _change_type
            when _change_type = 'insert' then 'update_postimage'
            else 'update_preimage'
        end as _change_type
    from changed
)
{%- endmacro %}

{#- Each added row with 1 and each removed row with -1, from what a table records of each of its changes. -#}
{% macro _rows_of_log_sql(log, columns) -%}
    select {{ columns | map(attribute='quoted') | join(", ") }},
        if(lower(_change_type) in ('insert', 'update_postimage'), 1, -1) as _change_sign
    from {{ log }}
{%- endmacro %}

{#- The same from both states of the table. -#}
{% macro _rows_of_states_sql(old, new, columns) -%}
    select {{ columns | map(attribute='quoted') | join(", ") }}, 1 as _change_sign
    from {{ new }}
    union all
    select
        {%- for column in columns %}
        {{ column.quoted if column.is_old else "null" }},
        {%- endfor %}
        -1
    from {{ old }}
{%- endmacro %}

{#- The columns of the later state of a table, and which of them the earlier one had, from the names and types of both. -#}
{% macro _columns_to_compare(before, after) -%}
    {%- set columns = [] -%}
    {%- for name, type in after.items() -%}
        {%- do columns.append({'name': name, 'quoted': adapter.quote(name), 'is_old': name in before}) -%}
    {%- endfor -%}
    {%- do return(columns) -%}
{%- endmacro %}

{#- Why two states of a table cannot be compared row by row, from the names and types of both; none if they can. Spark
    does not distinguish two values of some types, or not all of them. -#}
{% macro _why_not_compared(before, after) -%}
    {%- for name, type in after.items() -%}
        {%- if 'variant' in type or 'collate ' in type -%}
            {%- do return("values of its column " ~ name ~ " cannot be compared") -%}
        {%- elif before.get(name, type) != type -%}
            {%- do return("its column " ~ name ~ " is of another type than before") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not after.keys() | select('in', before) | list -%}
        {%- do return("it has none of the columns that it had") -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- Refuses keys that are no columns, and a column with a name of ours. -#}
{% macro _check_columns(table, names, keys) -%}
    {%- for key in keys if key not in names -%}
        {%- do exceptions.raise_compiler_error(
            "changed_rows: the key " ~ key ~ " is not a column of " ~ table ~ "; it has " ~ names | join(', ')) -%}
    {%- endfor -%}
    {%- for name in ['_change_type', '_change_sign'] if name in names -%}
        {%- do exceptions.raise_compiler_error(
            "changed_rows: " ~ table ~ " has a column " ~ name ~ ", a name that its changes need: rename it, or read "
            ~ "the table itself") -%}
    {%- endfor -%}
{%- endmacro %}

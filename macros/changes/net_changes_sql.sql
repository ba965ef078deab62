{#- What changed between two states of a table, whatever it is read from: a row that came and went again has
    not changed. With keys, a row that went and one that came with the same key are two states of one. -#}
{% macro net_changes_sql(relation, range, columns, keys, preimages) -%}
{%- set names = columns | map(attribute='quoted') | join(", ") -%}
{%- set key_names = columns | selectattr('name', 'in', keys) | map(attribute='quoted') | join(", ") -%}
with

signed_rows as (
    {{ heartbeat.signed_rows_sql(relation, range, columns) }}
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
{%- else %}

select * from changed
{%- endif %}
{%- endmacro %}

{#- What changed between two states of a table, whatever it is read from: a row that came and went again has
    not changed. With keys, a row that went and one that came with the same key are two states of one. -#}
{% macro net_changes_sql(relation, range, columns, keys, preimages) -%}
{%- set names = columns | map(attribute='quoted') | join(", ") -%}
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

{{ heartbeat.updates_by_key_sql(columns, keys, preimages) }}
{%- else %}

select * from changed
{%- endif %}
{%- endmacro %}

{#- The end of net_changes_sql where rows are known by keys: of a key that is on both sides, the row that went is
    an older state of the one that came. -#}
{% macro updates_by_key_sql(columns, keys, preimages) -%}
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

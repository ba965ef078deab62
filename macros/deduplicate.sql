{#- One row for each key, the first in the given order, as a subselect. Rows that the order does not tell apart are told
    apart by all of their columns, so that the same rows give the same answer. With `known`, keys whose row there comes
    before the one found are left out: a merge that gets an old day late takes nothing newer back. -#}
{% macro deduplicate(relation, keys, order_by, known=none) -%}
    {%- set keys = [keys] if keys is string else keys -%}
    {%- set order_by = order_by.split(',') if order_by is string else order_by -%}
(
    select * except (_row_number)
    from (
        select
            *,
            {{ heartbeat.row_number(keys, order_by + [heartbeat.refresh_canonical("struct(*)", "struct")]) }} as _row_number
        from {{ relation }}
    ) as latest
    where _row_number = 1
    {%- if known is not none %}
        and not exists (
            select 1
            from {{ known }} as known
            where
                {%- for key in keys %}
                known.{{ key }} <=> latest.{{ key }} and
                {%- endfor %}
                ({{ heartbeat.comes_before('known', 'latest', order_by) }})
        )
    {%- endif %}
)
{%- endmacro %}

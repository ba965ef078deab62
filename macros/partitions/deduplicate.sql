{#- One row for each key, the first in the given order, as a subselect. Ties are broken by all columns, so that the
    same rows give the same result. With `known`, keys whose row there comes first are left out: a merge of a late day
    replaces nothing newer. -#}
{% macro deduplicate(relation, keys, order_by, known=none) -%}
    {%- set keys = [keys] if keys is string else keys -%}
    {%- set order_by = order_by.split(',') if order_by is string else order_by -%}
(
    select * except (_row_number)
    from (
        select
            *,
            {{ heartbeat.row_number(keys, order_by + [heartbeat._refresh_canonical("struct(*)", "struct")]) }} as _row_number
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
                ({{ heartbeat._comes_before('known', 'latest', order_by) }})
        )
    {%- endif %}
)
{%- endmacro %}

{#- A condition: a row comes before another one in an order of columns, NULL where Spark puts it. -#}
{% macro _comes_before(one, other, order_by) -%}
    {%- set same = [] -%}
    {%- for item in order_by -%}
        {%- set found = modules.re.fullmatch(
            '(?i)([0-9A-Za-z_]+|`[^`]+`)( +asc| +desc)?( +nulls +first| +nulls +last)?', item | trim) -%}
        {%- if not found -%}
            {%- do exceptions.raise_compiler_error(
                "deduplicate: with known, order_by names columns, each with asc or desc, but '" ~ item | trim ~ "' is none") -%}
        {%- endif -%}
        {%- set column = found.group(1) -%}
        {%- set is_descending = (found.group(2) or '') | trim | lower == 'desc' -%}
        {%- set is_null_first = 'first' in found.group(3) | lower if found.group(3) else not is_descending -%}
        {%- set null_one, null_other = ("", "not ") if is_null_first else ("not ", "") -%}
        {{ "or " if not loop.first }}({% for each in same %}{{ each }} and {% endfor -%} (
            {{ one }}.{{ column }} {{ ">" if is_descending else "<" }} {{ other }}.{{ column }}
            or {{ one }}.{{ column }} is {{ null_one }}null and {{ other }}.{{ column }} is {{ null_other }}null
        ))
        {%- do same.append(one ~ "." ~ column ~ " <=> " ~ other ~ "." ~ column) -%}
    {%- endfor -%}
{%- endmacro %}

{#- The two ends of events that do not follow each other, by the times of their commits, where these tell. -#}
{% macro ends_by_time(events) -%}
    {%- set times = events | map(attribute='snapshot_ts') | unique | list -%}
    {%- set firsts = events | selectattr('prev_snapshot_id', 'none') | list
        + events | selectattr('tags.first_sight', 'defined') | list -%}
    {%- set taken_back = events | selectattr('tags.rolled_back', 'defined') | list -%}
    {%- if none in times or times | length < events | length or firsts or taken_back -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set in_order = events | sort(attribute='snapshot_ts') -%}
    {%- do return({'since': in_order[0].prev_snapshot_id, 'until': in_order[-1].snapshot_id}) -%}
{%- endmacro %}

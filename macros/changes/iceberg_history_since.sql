{#- The snapshots that an Iceberg table keeps, and whether the later end of a range that events told with breaks
    really comes after all of them; if not, which end is the older was a guess (`unordered`). -#}
{% macro iceberg_history_since(relation, range) -%}
    {%- set parents = dict(heartbeat.rows_of(
        "select cast(snapshot_id as string), cast(parent_id as string) from " ~ relation ~ ".snapshots", 2)) -%}
    {%- set found = {'snapshots': parents.keys() | list} -%}
    {%- set place = namespace(id=range.until, passed=[]) -%}
    {%- for _ in parents if place.id in parents and place.id != range.since -%}
        {%- do place.passed.append(place.id) -%}
        {%- set place.id = parents[place.id] -%}
    {%- endfor -%}
    {%- set missed = range.get('snapshots', []) | reject('in', place.passed) | list -%}
    {%- if range.snapshots is defined and (missed or place.id != range.since) -%}
        {%- do found.update(unordered=range.why) -%}
    {%- endif -%}
    {%- do return(found) -%}
{%- endmacro %}

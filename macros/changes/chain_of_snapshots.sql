{#- The range of events of an Iceberg table, each of which names the snapshot that it follows. -#}
{% macro chain_of_snapshots(events) -%}
    {%- set steps = {} -%}
    {%- for event in events if (event.get('prev_snapshot_id'), event.get('snapshot_id')) not in steps -%}
        {%- do steps.update({(event.get('prev_snapshot_id'), event.get('snapshot_id')): event}) -%}
    {%- endfor -%}
    {%- set after = dict(steps.keys()) -%}
    {%- set snapshots = steps.values() | map(attribute='snapshot_id') | unique | list -%}
    {%- set starts = after.keys() | reject('in', snapshots) | list -%}
    {%- set has_fork = after | length < steps | length or snapshots | length < steps | length -%}
    {%- set no_range = {'since': none, 'until': none, 'why': "its events do not follow each other without a break"} -%}
    {%- if none in snapshots or not (starts or has_fork) -%}
        {%- do return(no_range) -%}
    {%- elif has_fork or starts | length > 1 -%}
        {%- set told = heartbeat.ends_by_time(steps.values() | list) -%}
        {%- do return(dict(no_range, snapshots=snapshots, **told)) -%}
    {%- endif -%}
    {%- set place = namespace(id=starts[0], steps=0) -%}
    {%- for _ in steps if place.id in after -%}
        {%- set place.id = after[place.id] -%}
        {%- set place.steps = place.steps + 1 -%}
    {%- endfor -%}
    {%- if place.steps < steps | length -%}
        {%- do return(no_range) -%}
    {%- endif -%}
    {%- if starts[0] is none -%}
        {%- do return({'since': none, 'until': place.id, 'why': "no snapshot comes before the first event"}) -%}
    {%- endif -%}
    {%- do return({'since': starts[0], 'until': place.id}) -%}
{%- endmacro %}

{#- The range that the events of one table lead through, by the rules of harness/toolkit/changes/chain.py. -#}
{% macro chain_of_events(events, table) -%}
    {%- set formats = events | map(attribute='table_format') | map('upper') | unique | list -%}
    {%- set ids = events | map(attribute='tags') | selectattr('table_id', 'defined')
        | map(attribute='table_id') | unique | list -%}
    {%- if not events -%}
        {%- do return({'since': none, 'until': none, 'is_nothing': true, 'why': "no event tells of it"}) -%}
    {%- elif formats != [table.format] -%}
        {%- do return({'since': none, 'until': none, 'why': "the table was of another format before"}) -%}
    {%- elif ids | length > 1 or events | selectattr('tags.recreated', 'defined') | list -%}
        {%- do return({'since': none, 'until': none, 'why': "the table was dropped and created again"}) -%}
    {%- elif table.format == 'HIVE' -%}
        {%- do return(heartbeat.chain_of_partitions(events, table)) -%}
    {%- endif -%}
    {%- set chain = heartbeat.chain_of_versions(events) if table.format == 'DELTA'
        else heartbeat.chain_of_snapshots(events) -%}
    {%- if chain.until is not none and events | selectattr('tags.first_sight', 'defined') | list -%}
        {%- do chain.update(since=none, why="an event is the first that was seen of it") -%}
    {%- endif -%}
    {%- for flag in ['gap', 'rolled_back', 'replaced', 'overwrite', 'schema_changed'] -%}
        {%- for event in events if chain.why is not defined and event.tags.get(flag, 'false') != 'false' -%}
            {%- do chain.update(why="snapshot " ~ event.snapshot_id ~ " is marked " ~ flag) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(chain) -%}
{%- endmacro %}

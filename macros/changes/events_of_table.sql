{#- Of the events those of one table, by its name, or by its folder where the sensor watches the folder. -#}
{% macro events_of_table(events, table) -%}
    {%- set names = [] -%}
    {%- for name in [table.name, table.location] -%}
        {%- do names.append(heartbeat.plain_name(name)) -%}
    {%- endfor -%}
    {%- set found = [] -%}
    {%- for event in events if event.table and heartbeat.plain_name(event.table) in names -%}
        {%- do found.append(dict(event, tags=event.get('tags') or {})) -%}
    {%- endfor -%}
    {%- do return(found) -%}
{%- endmacro %}

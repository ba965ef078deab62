{#- How often a Delta table was put back to an older state: the version of each RESTORE, and the version that came back. -#}
{% macro restores_of(relation) -%}
    {%- set found = [] -%}
    {%- for row in run_query("describe history " ~ relation).rows if row['operation'] == 'RESTORE' -%}
        {%- set to = heartbeat.as_mapping(row['operationParameters']).get('version') -%}
        {#- By a time, the version is not told: nothing from before counts then. -#}
        {%- do found.append({'at': row['version'] | int, 'to': to | int(-1) if to is not none else -1}) -%}
    {%- endfor -%}
    {%- do return(found) -%}
{%- endmacro %}

{#- What the staged rows say of each batch: how many there are, what they look like together in whatever order, which
    range they span, and how many have to be rejected. -#}
{% macro refresh_batch_facts(load) -%}
    {%- set facts = [] -%}
    {%- for row in heartbeat.rows_of(heartbeat.refresh_facts_query(load), 7) -%}
        {%- do facts.append({'batch': row[0], 'record_count': row[1] | int, 'fingerprint': row[2],
            'range_from': row[3], 'range_to': row[4], 'rejected': row[5] | int, 'deleted': row[6] | int}) -%}
    {%- endfor -%}
    {%- if not facts and (load.is_operation or not load.settings.batch_by) -%}
        {%- do facts.append({'batch': none, 'record_count': 0, 'rejected': 0, 'deleted': 0,
            'fingerprint': none, 'range_from': none, 'range_to': none}) -%}
    {%- endif -%}
    {%- do return(facts) -%}
{%- endmacro %}

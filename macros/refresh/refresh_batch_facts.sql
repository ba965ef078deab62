{#- What the staged rows say of each batch: how many there are, what they look like together in whatever order, which
    range they span, and how many have to be rejected. -#}
{% macro refresh_batch_facts(load) -%}
    {%- set facts = heartbeat.commits_in(heartbeat.refresh_facts_query(load)) -%}
    {%- if not facts and (load.is_operation or not load.settings.batch_by) -%}
        {%- do facts.append({'batch': none, 'record_count': 0, 'rejected': 0, 'deleted': 0,
            'fingerprint': none, 'range_from': none, 'range_to': none}) -%}
    {%- endif -%}
    {%- do return(facts) -%}
{%- endmacro %}

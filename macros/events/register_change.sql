{#- A post-hook that registers what the build of this model changed as data-change events in the inbox. It writes
    nothing if no commit changed data, and the same events again if the last commit is an old one: the tick recognises
    a known snapshot, and a hook that failed is made up for. -#}
{% macro register_change(tags=none, partition=none, operation=none) -%}
    {%- do heartbeat._check_registration(tags, partition, operation) -%}
    {%- if execute and not flags.EMPTY -%}
        {%- set table = heartbeat._table_facts(this) -%}
        {%- set events = [] -%}
        {%- for commit in heartbeat._commits_of_build(this, table, partition) -%}
            {%- set event = heartbeat._event_of_commit(commit, table, tags, partition) -%}
            {%- if operation is not none -%}
                {%- do event.update(operation_type=operation | upper) -%}
            {%- endif -%}
            {%- do events.append(event) -%}
        {%- endfor -%}
        {%- if events -%}
            {{ heartbeat._write_to_inbox(events) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- Registers what the build of this model has changed, as data-change events in the inbox: a post-hook.
    It writes nothing when no commit changed data, and the same again when the last one is an old one:
    the tick that takes it in knows a snapshot that it has, and a hook that failed is made good. -#}
{% macro register_change(tags=none, partition=none, operation=none) -%}
    {%- do heartbeat.check_registration(tags, partition, operation) -%}
    {%- if execute and not flags.EMPTY -%}
        {%- set table = heartbeat.table_facts(this) -%}
        {%- set events = [] -%}
        {%- for commit in heartbeat.commits_of_build(this, table, partition) -%}
            {%- set told = heartbeat.event_of_commit(commit, table, tags, partition) -%}
            {%- if operation is not none -%}
                {%- do told.update(operation_type=operation | upper) -%}
            {%- endif -%}
            {%- do events.append(told) -%}
        {%- endfor -%}
        {%- if events -%}
            {{ heartbeat.leave_in_inbox(events) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

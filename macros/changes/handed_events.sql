{#- The events that this run was handed; none when it was handed nothing, not even an empty list. -#}
{% macro handed_events(given=none) -%}
    {%- set handed = given if given is not none else var('heartbeat_events', env_var('HEARTBEAT_EVENTS', '')) -%}
    {%- if handed is string -%}
        {%- if not handed | trim -%}
            {%- do return(none) -%}
        {%- endif -%}
        {%- set handed = fromjson(handed) -%}
    {%- endif -%}
    {%- if handed is mapping and handed.events_file is defined -%}
        {%- set lines = heartbeat.rows_of("select value from text.`" ~ handed.events_file ~ "`") -%}
        {%- set handed = fromjson(lines | map('first') | join('\n')) -%}
    {%- endif -%}
    {%- if handed is none or handed is mapping or handed is not sequence -%}
        {%- do exceptions.raise_compiler_error(
            "changed_rows: what this run was handed is neither a JSON list of events nor a reference with an "
            ~ "events_file: pass on what Heartbeat started the job with, as the variable heartbeat_events") -%}
    {%- endif -%}
    {%- do return(handed) -%}
{%- endmacro %}

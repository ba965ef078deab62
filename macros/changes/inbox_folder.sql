{#- Where the next tick looks for messages. A project of its own has another folder than the harness, so that
    nothing but its environment or a variable can tell. -#}
{% macro inbox_folder() -%}
    {%- set home = env_var('HEARTBEAT_HOME', '.heartbeat' if project_name == 'heartbeat' else '') -%}
    {%- set is_local = target.type == 'spark' -%}
    {%- set folder = var('heartbeat_inbox', home ~ '/inbox' if home and is_local else '') -%}
    {%- if not folder -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: nothing says where the inbox of Heartbeat is: set the variable heartbeat_inbox to the "
            ~ ("folder, or the environment variable HEARTBEAT_HOME to the harness's own" if is_local
            else "path of a volume that the harness reads, such as /Volumes/main/heartbeat/inbox")) -%}
    {%- endif -%}
    {%- do return(folder.rstrip('/')) -%}
{%- endmacro %}

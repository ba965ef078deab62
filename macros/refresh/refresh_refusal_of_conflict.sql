{#- Why a batch must not reach the hub whose rows contradict each other, as a sentence; nothing when it may. -#}
{% macro refresh_refusal_of_conflict(load, batch) -%}
    {%- if load.settings.on_conflict != 'fail' or load.is_replay -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set rows = "(" ~ heartbeat.refresh_staged_rows(load, [batch]) ~ ") as given" -%}
    {%- for _, count in heartbeat.rows_of(heartbeat.refresh_conflicts(load.settings, rows), 2) -%}
        {%- do return(count ~ " of its keys have rows of one instant that differ, and on_conflict is fail; tie_breaker "
            ~ "names the columns that tell which of them holds") -%}
    {%- endfor -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- The range, if both of its ends can still be read; else the whole table, and the reason. -#}
{% macro range_that_is_kept(relation, table, range) -%}
    {%- if range.is_nothing or range.until is none or table.format == 'HIVE' -%}
        {%- do return(range) -%}
    {%- elif range.since | string == range.until | string -%}
        {%- do return(dict(range, is_nothing=true, why="both ends are the same snapshot")) -%}
    {%- endif -%}
    {%- if table.format == 'ICEBERG' -%}
        {%- set history = heartbeat.iceberg_history_since(relation, range) -%}
    {%- else -%}
        {%- set history = heartbeat.delta_history_since(relation, range) -%}
    {%- endif -%}
    {%- if range.until | string not in history.snapshots or history.unordered is defined -%}
        {%- set why = history.unordered | default("snapshot " ~ range.until ~ " is not there any more", true) -%}
        {%- do return({'since': none, 'until': none, 'why': why ~ ", so all rows are given as they are now"}) -%}
    {%- elif range.since is not none and (range.since | string not in history.snapshots or history.lost is defined) -%}
        {%- set why = history.lost | default("snapshot " ~ range.since ~ " is not there any more", true) -%}
        {%- do return({'since': none, 'until': range.until, 'why': why ~ ", so all rows are given"}) -%}
    {%- endif -%}
    {%- set has_feed = 'enablechangedatafeed=true' in table.properties | lower | replace(' ', '') -%}
    {%- set by_feed = has_feed and range.why is not defined and history.rewritten is not defined -%}
    {%- do return(dict(range, by_feed=by_feed)) -%}
{%- endmacro %}

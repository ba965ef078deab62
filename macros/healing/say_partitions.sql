{#- Says what a run takes, what it leaves to the next, and what it will not take by itself. -#}
{% macro say_partitions(name, source, found, look_back_days) -%}
    {%- set chosen = found.chosen | length -%}
    {%- if chosen -%}
        {%- do log(name ~ ": takes " ~ chosen ~ " of " ~ found.pending | length ~ " pending partitions of " ~ source ~ ", from "
            ~ found.chosen[0].value ~ " to " ~ found.chosen[-1].value ~ "; left: " ~ (found.pending | length - chosen),
            info=true) -%}
    {%- else -%}
        {%- do log(name ~ ": no partition of " ~ source ~ " is pending", info=true) -%}
    {%- endif -%}
    {%- if found.too_old -%}
        {%- do exceptions.warn(
            name ~ ": " ~ found.too_old | length ~ " partitions of " ~ source ~ " were never taken as they are now, and are "
            ~ "more than " ~ look_back_days ~ " days older than the newest that was: "
            ~ heartbeat.partition_words(found.too_old)
            ~ ". Take them with --vars '{look_back_days: all}', or raise look_back_days") -%}
    {%- endif -%}
    {%- if found.ahead -%}
        {%- do exceptions.warn(
            name ~ ": partitions of " ~ source ~ " are in the future: " ~ heartbeat.partition_words(found.ahead)
            ~ ". They are taken like others, and hold nothing back; look at the clock of who wrote them") -%}
    {%- endif -%}
{%- endmacro %}

{#- What a refresh model has taken by its ledger, in which each partition is a batch. One that was refused is not taken, and one that
    was unloaded is looked at again: it may have changed. -#}
{% macro partitions_in_ledger(node, hub, taken, type) -%}
    {%- if taken is not none or not heartbeat.refresh_settings(node).batch_by -%}
        {%- do exceptions.raise_compiler_error(
            node.name ~ ": the ledger of a refresh model says which partitions it has taken: leave taken out, and name the column "
            ~ "that holds the partition in meta.refresh.batch_by") -%}
    {%- endif -%}
    {%- set known = {} -%}
    {%- set tables = heartbeat.refresh_tables(hub) -%}
    {%- if load_relation(tables.ledger) is none -%}
        {%- do return(known) -%}
    {%- endif -%}
    {%- set value = heartbeat.partition_text("cast(newest.batch as " ~ type ~ ")", type) -%}
    {%- set query -%}
        select to_json(named_struct('value', {{ value }}), map('ignoreNullFields', 'false'))
        from ({{ heartbeat.refresh_newest_of_ledger({'tables': tables}) }})
        where newest.batch is not null and newest.state not in ('FAILED', 'UNLOADED')
    {%- endset -%}
    {%- for fact in heartbeat.commits_in(query) -%}
        {%- do known.update({fact.value: none}) -%}
    {%- endfor -%}
    {%- do return(known) -%}
{%- endmacro %}

{#- What a refresh model has taken by its ledger, in which each partition is a batch. One that was refused is not taken, and one that
    was unloaded is looked at again: it may have changed. -#}
{% macro partitions_in_ledger(node, hub, taken, type) -%}
    {%- if taken is not none or not heartbeat.refresh_settings(node).batch_by -%}
        {%- do exceptions.raise_compiler_error(
            node.name ~ ": the ledger of a refresh model says which partitions it has taken: leave taken out, and name the column "
            ~ "that holds the partition in meta.refresh.batch_by") -%}
    {%- endif -%}
    {%- set tables = heartbeat.refresh_tables(hub) -%}
    {%- if load_relation(tables.ledger) is none -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set batches -%}
        (
            select newest.batch
            from ({{ heartbeat.refresh_newest_of_ledger({'tables': tables}, heartbeat.refresh_names_of(tables.ledger)) }})
            where newest.batch is not null and newest.state not in ('FAILED', 'CLAIMED', 'UNLOADED')
        )
    {%- endset -%}
    {%- do return(heartbeat.partitions_in_column(batches, 'batch', type)) -%}
{%- endmacro %}

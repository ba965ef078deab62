{#- Makes the record of a model's partitions, if it is not there. -#}
{% macro make_record_of_partitions(record) -%}
    {%- do run_query(
        "create table if not exists " ~ record ~ " (source string, source_id string, partition_column string, "
        ~ "partition string, stamp string, look_back_days int, table_id string, table_version bigint, taken_at timestamp, "
        ~ "invocation_id string, intent_id string) using delta") -%}
{%- endmacro %}

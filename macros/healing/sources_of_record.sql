{#- The tables of which a model has taken partitions, with the column and the look-back of the newest run. -#}
{% macro sources_of_record(record) -%}
    {%- set query -%}
        select to_json(max_by(struct(source, partition_column, look_back_days), taken_at), map('ignoreNullFields', 'false'))
        from {{ record }}
        group by source
    {%- endset -%}
    {%- do return(heartbeat.commits_in(query)) -%}
{%- endmacro %}

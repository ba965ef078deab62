{#- What a model has taken of a source, by its record: each partition as it was then. What was recorded of another table
    of the same name, of another source, or of a state that a RESTORE has undone, does not count. -#}
{% macro partitions_taken(target_table, source) -%}
    {%- set record = heartbeat.record_of_partitions(target_table) -%}
    {%- set taken = {} -%}
    {%- if load_relation(record) is none -%}
        {%- do return(taken) -%}
    {%- endif -%}
    {%- set query -%}
        select to_json(named_struct(
            'value', partition,
            'stamp', max_by(stamp, struct(table_version, taken_at))
        ), map('ignoreNullFields', 'false')) as fact
        from {{ record }}
        where
            source = {{ heartbeat.seed_literal(source.name, 'string') }}
            and source_id = {{ heartbeat.seed_literal(source.id, 'string') }}
            and table_id = {{ heartbeat.seed_literal(heartbeat.delta_table_id(target_table), 'string') }}
            {%- for restore in heartbeat.restores_of(target_table) %}
            and not (table_version > {{ restore.to }} and table_version < {{ restore.at }})
            {%- endfor %}
        group by partition
    {%- endset -%}
    {%- for fact in heartbeat.commits_in(query) -%}
        {%- do taken.update({fact.value: fact.stamp}) -%}
    {%- endfor -%}
    {%- do return(taken) -%}
{%- endmacro %}

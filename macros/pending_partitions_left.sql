{#- An operation: ends well when no partition that the model takes is pending, and fails as long as there are some, so
    that a loop in a shell knows when to end. -#}
{% macro pending_partitions_left(model) -%}
    {%- set found = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and model in (node.name, node.package_name ~ "." ~ node.name) -%}
        {%- do found.append(api.Relation.create(
            database=node.database, schema=node.schema, identifier=node.alias, type='table')) -%}
    {%- endfor -%}
    {%- if not found -%}
        {%- do exceptions.raise_compiler_error("pending_partitions_left: there is no model " ~ model) -%}
    {%- elif load_relation(found[0]) is none or load_relation(heartbeat.record_of_partitions(found[0])) is none -%}
        {%- do exceptions.raise_compiler_error("pending_partitions_left: " ~ model ~ " has taken nothing yet: run it first") -%}
    {%- endif -%}
    {%- set left = [] -%}
    {%- for fact in heartbeat.sources_of_record(heartbeat.record_of_partitions(found[0])) -%}
        {%- set parts = fact.source.split('.') -%}
        {%- set relation = api.Relation.create(
            database=parts[-3] if parts | length > 2 else none, schema=parts[-2], identifier=parts[-1], type='table') -%}
        {%- set source = heartbeat.partitions_of(relation, fact.partition_column) -%}
        {%- set known = heartbeat.partitions_taken(found[0], source) -%}
        {%- do left.extend(heartbeat.partitions_to_take(
            source.partitions, known, heartbeat.partition_limit('look_back_days', fact.look_back_days, 0), none,
            run_started_at.timestamp()).pending) -%}
    {%- endfor -%}
    {%- if left -%}
        {%- do exceptions.raise_compiler_error(
            "pending_partitions_left: " ~ left | length ~ " partitions are pending for " ~ model ~ ": "
            ~ heartbeat.partition_words(left)) -%}
    {%- endif -%}
    {%- do log(model ~ ": no partition is pending", info=true) -%}
{%- endmacro %}

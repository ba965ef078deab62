{#- An operation that fails while partitions are pending for the model, and succeeds when there are none, so that a
    shell loop can end. -#}
{% macro pending_partitions_left(model) -%}
    {%- set found = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and model in (node.name, node.package_name ~ "." ~ node.name) -%}
        {%- do found.append(api.Relation.create(
            database=node.database, schema=node.schema, identifier=node.alias, type='table')) -%}
    {%- endfor -%}
    {%- if not found -%}
        {%- do exceptions.raise_compiler_error("pending_partitions_left: unknown model " ~ model) -%}
    {%- elif load_relation(found[0]) is none or load_relation(heartbeat._partition_record(found[0])) is none -%}
        {%- do exceptions.raise_compiler_error("pending_partitions_left: " ~ model ~ " has taken nothing yet: run it first") -%}
    {%- endif -%}
    {%- set left = [] -%}
    {%- for fact in heartbeat._partition_record_sources(heartbeat._partition_record(found[0])) -%}
        {%- set parts = fact.source.split('.') -%}
        {%- set relation = api.Relation.create(
            database=parts[-3] if parts | length > 2 else none, schema=parts[-2], identifier=parts[-1], type='table') -%}
        {%- set source = heartbeat._partitions_of(relation, fact.partition_column) -%}
        {%- set known = heartbeat._partitions_taken(found[0], source) -%}
        {%- do left.extend(heartbeat._select_partitions(
            source.partitions, known, heartbeat._partition_limit('look_back_days', fact.look_back_days, 0), none,
            run_started_at.timestamp()).pending) -%}
    {%- endfor -%}
    {%- if left -%}
        {%- do exceptions.raise_compiler_error(
            "pending_partitions_left: " ~ left | length ~ " partitions are pending for " ~ model ~ ": "
            ~ heartbeat._partition_summary(left)) -%}
    {%- endif -%}
    {%- do log(model ~ ": no partition is pending", info=true) -%}
{%- endmacro %}

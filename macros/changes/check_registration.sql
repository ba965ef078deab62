{#- Refuses what register_change cannot mean, when dbt parses the project or at the latest when it builds. -#}
{% macro check_registration(tags, partition, operation) -%}
    {%- if model is not defined or model.resource_type not in ('model', 'seed', 'snapshot') -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: it tells of a table that was just built, so it stands in the post_hook of a model, "
            ~ "a seed or a snapshot, and nowhere else") -%}
    {%- endif -%}
    {#- dbt never runs the hooks of an ephemeral model, so that has to be noticed while it parses, when the model
        does not know its settings yet. Of a view it might be said too early: a yml may still make it a table. -#}
    {%- set settings = model.config if execute else config.context_config.build_config_dict() -%}
    {%- set kind = settings.materialized -%}
    {%- if kind == 'ephemeral' or execute and kind in ('view', 'materialized_view', 'metric_view') -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: " ~ model.name ~ " is materialized as " ~ kind ~ ", which holds no data of its own to "
            ~ "change: take the post_hook away, or materialize it as table, incremental or snapshot") -%}
    {%- endif -%}
    {%- set operations = ['APPEND', 'DELETE', 'UPDATE'] -%}
    {%- if operation is not none and operation | string | upper not in operations -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: operation is " ~ operation ~ ", but must be one of " ~ operations | join(', ')
            ~ ", or left out") -%}
    {%- endif -%}
    {%- if partition is not none and (partition is string or partition is mapping or partition is not sequence) -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: partition is " ~ partition ~ ", but must be a list with one value for each partition "
            ~ "level, such as ['2026-03-01', 7], or left out") -%}
    {%- endif -%}
    {%- if tags is not none and tags is not mapping -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: tags is " ~ tags ~ ", but must be a mapping of text to text, such as "
            ~ "{'quality': 'checked'}, or left out") -%}
    {%- endif -%}
    {%- for key, value in (tags or {}).items() if key is not string or value is not string -%}
        {%- do exceptions.raise_compiler_error(
            "register_change: the tag " ~ key ~ " is " ~ value ~ ", which is no text: put it in quotes") -%}
    {%- endfor -%}
{%- endmacro %}

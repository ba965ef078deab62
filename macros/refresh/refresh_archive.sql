{#- Writes the rows of a batch with their codes into the archive, in one commit that a second try repeats, and
    counts them. Neither hub nor history is touched. -#}
{% macro refresh_archive(load, batch) -%}
    {%- if load.settings.type == 'key' -%}
        {%- do batch.update(is_unique=heartbeat.refresh_has_each_key_once(load, batch)) -%}
        {%- set classified = heartbeat.refresh_classified_by_key(load, batch) -%}
    {%- else -%}
        {%- set classified = heartbeat.refresh_staged_rows(load, batch) -%}
    {%- endif -%}
    {%- set given = load.columns | map(attribute='name') | list
        + heartbeat.refresh_system_columns(load.settings, 'batches').keys() | list -%}
    {%- do heartbeat.refresh_fill(load, 'batches', {'names': given, 'source': "(" ~ classified ~ ") as given"},
        "s_input_id = " ~ batch.id) -%}
    {%- do batch.update(code_counts=heartbeat.refresh_code_counts(load, batch)) -%}
{%- endmacro %}

{#- Writes the rows of batches with their codes into the archive, in one commit that a second try repeats, and
    counts them. Neither hub nor history is touched. -#}
{% macro refresh_archive(load, batches) -%}
    {%- if load.settings.type == 'key' -%}
        {%- do batches[0].update(is_unique=heartbeat.refresh_has_each_key_once(load, batches)) -%}
        {%- set classified = heartbeat.refresh_classified_by_key(load, batches) -%}
    {%- else -%}
        {%- set classified = heartbeat.refresh_staged_rows(load, batches) -%}
    {%- endif -%}
    {%- set given = load.columns | map(attribute='name') | list
        + heartbeat.refresh_system_columns(load.settings, 'batches').keys() | list -%}
    {%- do heartbeat.refresh_fill(load, 'batches', {'names': given, 'source': "(" ~ classified ~ ") as given"},
        heartbeat.refresh_replaced_in_archive(load, batches)) -%}
    {%- do heartbeat.refresh_count_codes(load, batches) -%}
{%- endmacro %}

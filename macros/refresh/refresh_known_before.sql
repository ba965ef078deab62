{#- What was known of a row's key before the row was received, as SQL: what tables say of it, unless a batch before it that is
    brought in with its own says something that is not older. -#}
{% macro refresh_known_before(settings, batches) -%}
    {%- set fields = "struct({0}.s_update_timestamp, {1} as s_input_id, {0}.s_hash, {0}.s_deleted_flag)" -%}
    {%- set in_tables = "if(known.s_update_timestamp is null, null, " ~ fields.format("known", "0l") ~ ")" -%}
    {%- if batches | length == 1 -%}
        {{ in_tables }}
    {%- else -%}
        greatest({{ in_tables }}, max(if(
            ranked.s_is_rejected or ranked.s_rank > 1, null, {{ fields.format("ranked", "ranked.s_input_id") }}
        )) over (
            partition by {{ heartbeat.refresh_names(settings.key, 'ranked') }}
            order by ranked.s_input_id range between unbounded preceding and 1 preceding
        ))
    {%- endif -%}
{%- endmacro %}

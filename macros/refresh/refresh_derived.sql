{#- The system columns that follow from a row alone, as SQL; among them `s_is_rejected`. -#}
{% macro refresh_derived(load) -%}
    {%- set settings = load.settings -%}
    {%- if settings.type == 'key' -%}
        {%- set missing = [] -%}
        {%- for column in settings.key if settings.null_keys != 'match' -%}
            {%- do missing.append(adapter.quote(column) ~ " is null") -%}
        {%- endfor -%}
        {%- set dated_by = settings.updated_at or settings.extracted_at -%}
        {%- if dated_by -%}
            {%- set changed_at = heartbeat.refresh_time(settings, dated_by) -%}
            {%- do missing.append(changed_at ~ " is null") -%}
        {%- else -%}
            {%- set changed_at = "timestamp'" ~ (load.received_at or run_started_at) ~ "'" -%}
        {%- endif -%}
        {{ heartbeat.refresh_hash(heartbeat.refresh_tracked_columns(load)) }} as s_hash,
        {{ changed_at }} as s_update_timestamp,
        {{ "coalesce(" ~ settings['deletes.when'] ~ ", false)" if settings['deletes.when'] else "false" }} as s_deleted_flag,
        {{ missing | join(" or ") or "false" }} as s_is_rejected
    {%- elif settings.type == 'timestamp' -%}
        {%- set value = heartbeat.refresh_time(settings, settings.column) -%}
        {{ value }} as s_timestamp,
        {{ value }} is null as s_is_rejected
    {%- elif settings.type == 'sequence' -%}
        {%- set value = "try_cast(" ~ adapter.quote(settings.column) ~ " as decimal(38, 0))" -%}
        {{ value }} as s_sequence,
        {{ value }} is null as s_is_rejected
    {%- elif settings.extracted_at -%}
        {{ heartbeat.refresh_time(settings, settings.extracted_at) }} as s_timestamp,
        false as s_is_rejected
    {%- else -%}
        false as s_is_rejected
    {%- endif -%}
{%- endmacro %}

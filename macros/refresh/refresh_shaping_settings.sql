{#- Those settings that decide what stands in hub, history and ledger; the others only say which batches may come. -#}
{% macro refresh_shaping_settings(settings) -%}
    {%- set shaping = {} -%}
    {%- for name in ['type', 'key', 'updated_at', 'format', 'time_zone', 'exclude_from_cdc', 'hash_columns', 'tie_breaker',
        'unchanged_newer', 'late_arriving', 'null_keys', 'deletes.when', 'deletes.complete', 'deletes.mode', 'column', 'delete_condition', 'append_filter',
        'extracted_at', 'history', 'watermark'] if name in settings -%}
        {%- do shaping.update({name: settings[name]}) -%}
    {%- endfor -%}
    {%- do return(shaping) -%}
{%- endmacro %}

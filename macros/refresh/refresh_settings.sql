{#- The settings of a model that is materialized as refresh, whole and checked: `meta.refresh` with what was left
    out filled in. Whatever cannot be meant ends the run with one sentence. -#}
{% macro refresh_settings(node) -%}
    {%- do heartbeat.refresh_check_config(node) -%}
    {%- set given = {} -%}
    {%- for name, value in (node.config.get('meta', {}).get('refresh') or {}).items() -%}
        {%- if value is mapping -%}
            {%- for part, inner in value.items() -%}
                {%- do given.update({name ~ '.' ~ part: inner}) -%}
            {%- endfor -%}
        {%- else -%}
            {%- do given.update({name: value}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do heartbeat.refresh_check_settings(node, given) -%}
    {%- set settings = {} -%}
    {%- for name, option in heartbeat.refresh_options().items() if given.type in option.types -%}
        {%- set value = given.get(name) -%}
        {%- set value = option.get('defaults', {}).get(given.type, option.get('default')) if value is none else value -%}
        {%- do settings.update({name: [value] if option.legal == 'columns' and value is string else value}) -%}
    {%- endfor -%}
    {%- do return(settings) -%}
{%- endmacro %}

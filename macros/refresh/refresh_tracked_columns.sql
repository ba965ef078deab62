{#- The columns whose change is a change of the row: those that the settings list, or all that are no key and are not
    excluded. The date column says when, not what, so it is none of them. -#}
{% macro refresh_tracked_columns(load) -%}
    {%- set settings = load.settings -%}
    {%- set listed = settings.hash_columns | map('lower') | list -%}
    {%- set dates = [settings.updated_at or '', settings.extracted_at or ''] -%}
    {%- set left_out = (settings.key + settings.exclude_from_cdc + dates) | map('lower') | list -%}
    {%- set tracked = [] -%}
    {%- for column in load.columns -%}
        {%- set name = column.name | lower -%}
        {%- if name in listed or (not listed and name not in left_out) -%}
            {%- do tracked.append(column) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(tracked) -%}
{%- endmacro %}

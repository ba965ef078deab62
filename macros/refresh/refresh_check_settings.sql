{#- Refuses settings of a refresh model that cannot be meant, each with what is legal instead. -#}
{% macro refresh_check_settings(node, given) -%}
    {%- set options = heartbeat.refresh_options() -%}
    {%- set where = node.original_file_path ~ ": meta.refresh of " ~ node.name -%}
    {%- set legal = options.type.legal -%}
    {%- if given.get('type') not in legal -%}
        {%- do exceptions.raise_compiler_error(
            where ~ ": type is " ~ (given.get('type') or 'missing') ~ ", but must be one of " ~ legal | join(', ')) -%}
    {%- endif -%}
    {%- set known = [] -%}
    {%- for name, option in options.items() if given.type in option.types -%}
        {%- do known.append(name) -%}
        {%- if option.is_needed and not given.get(name) -%}
            {%- do exceptions.raise_compiler_error(where ~ ": " ~ given.type ~ " needs the setting " ~ name) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name, value in given.items() -%}
        {%- if name not in known -%}
            {%- do exceptions.raise_compiler_error(
                where ~ ": " ~ name ~ " is no setting of " ~ given.type ~ ", which has " ~ known | join(', ')) -%}
        {%- endif -%}
        {%- do heartbeat.refresh_check_value(where ~ ": " ~ name, value, options[name].legal) -%}
    {%- endfor -%}
    {%- do heartbeat.refresh_check_together(where, given) -%}
    {%- if (node.config.get('file_format') or 'delta') != 'delta' or (
        target.type == 'spark' and node.config.get('file_format') is none) -%}
        {%- do exceptions.raise_compiler_error(
            where ~ ": file_format is " ~ (node.config.get('file_format') or 'left out, which dbt-spark takes for parquet')
            ~ ", but must be delta") -%}
    {%- endif -%}
{%- endmacro %}

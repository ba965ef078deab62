{#- The greatest value that the rows of a batch have in the column that `watermark` names, as SQL text: a whole number, or the
    microseconds of an instant since 1970 with `us` after them. -#}
{% macro refresh_watermark_value(load) -%}
    {%- set named = load.settings.watermark -%}
    {%- if not named -%}
        {%- do return("cast(null as string)") -%}
    {%- endif -%}
    {%- for column in load.columns if column.name | lower == named | lower -%}
        {%- if column.type in ('tinyint', 'smallint', 'int', 'bigint') or column.type.startswith('decimal') and column.type.endswith(',0)') -%}
            {%- do return("cast(max(s_watermark) as string)") -%}
        {%- elif column.type in ('timestamp', 'timestamp_ntz', 'date') -%}
            {%- do return("cast(unix_micros(max(cast(s_watermark as timestamp))) as string) || ' us'") -%}
        {%- endif -%}
        {%- do exceptions.raise_compiler_error(load.name ~ ": meta.refresh.watermark names " ~ named ~ ", which is " ~ column.type
            ~ ", but must be a whole number, a timestamp or a date: cast it in the model's query") -%}
    {%- endfor -%}
{%- endmacro %}

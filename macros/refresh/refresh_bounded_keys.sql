{#- The key columns by whose least and greatest value a batch is found in hub and history without reading all of them: whole numbers
    and dates, whose text is exact. There are none where a key may go because no row has it, or where NULL is a key. -#}
{% macro refresh_bounded_keys(load) -%}
    {%- set settings, bounded = load.settings, [] -%}
    {%- if settings.type == 'key' and not settings['deletes.complete'] and settings.null_keys != 'match' -%}
        {%- for column in load.columns if column.name | lower in settings.key | map('lower') -%}
            {%- if modules.re.fullmatch('tinyint|smallint|int|bigint|date|decimal\\([0-9]+,0\\)', column.type) -%}
                {%- do bounded.append({'quoted': column.quoted, 'literal': "date'%s'" if column.type == 'date' else "%s"}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(bounded) -%}
{%- endmacro %}

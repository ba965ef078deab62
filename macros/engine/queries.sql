{#- The rows of a query as lists of a given number of values, whatever row type the adapter returns. -#}
{% macro _query_rows(query, width=1) -%}
    {%- set rows = [] -%}
    {%- for row in run_query(query).rows -%}
        {%- do rows.append((row.values() | list)[:width]) -%}
    {%- endfor -%}
    {%- do return(rows) -%}
{%- endmacro %}

{#- The rows of a query that returns one column of JSON, parsed. -#}
{% macro _json_rows(query) -%}
    {%- set commits = [] -%}
    {%- for row in heartbeat._query_rows(query) -%}
        {%- do commits.append(fromjson(row[0])) -%}
    {%- endfor -%}
    {%- do return(commits) -%}
{%- endmacro %}

{#- A map that a query returned: adapters represent it as a mapping, as pairs, or as JSON of either. -#}
{% macro _as_mapping(value) -%}
    {%- set read = fromjson(value) if value is string else value -%}
    {%- do return(dict(read or {})) -%}
{%- endmacro %}

{#- A value as a SQL literal of a type. -#}
{% macro _sql_literal(value, type) -%}
    {%- if value is none -%}
        null
    {%- else -%}
        {%- set text = value | string | replace("\\", "\\\\") | replace("'", "\\'") -%}
        {%- if type == 'string' -%}
            '{{ text }}'
        {%- else -%}
            cast('{{ text }}' as {{ type }})
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- What the catalog holds of a table: its name as in events, format, location, partition columns. -#}
{% macro _table_facts(relation) -%}
    {%- set facts = {} -%}
    {%- set partition_columns = [] -%}
    {%- set place = namespace(section='') -%}
    {%- for name, said in heartbeat._query_rows("describe table extended " ~ relation, 2) -%}
        {%- set name = (name or '') | trim -%}
        {%- if name.startswith('# ') and name != '# col_name' -%}
            {%- set place.section = name -%}
        {%- elif place.section == '# Partition Information' and name and name != '# col_name' -%}
            {%- do partition_columns.append({'name': name, 'type': said}) -%}
        {%- elif place.section == '# Detailed Table Information' and name -%}
            {%- do facts.update({name: said}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if 'VIEW' in facts.get('Type', '') -%}
        {%- do exceptions.raise_compiler_error(
            relation ~ " is a view, which holds no data of its own to change: name a table") -%}
    {%- endif -%}
    {%- set provider = facts.get('Provider', 'hive') | lower -%}
    {%- set parts = [relation.database if relation.include_policy.database else none, relation.schema, relation.identifier] -%}
    {%- do return({
        'name': parts | select | join('.'),
        'format': provider | upper if provider in ('delta', 'iceberg') else 'HIVE',
        'provider': provider,
        'location': facts.get('Location', ''),
        'properties': facts.get('Table Properties', ''),
        'partition_columns': partition_columns,
    }) -%}
{%- endmacro %}

{#- A partition's value, which is text in a log or a folder's name, as JSON text in SQL: numbers as numbers, an empty
    value as null. The sensors write the same. -#}
{% macro _partition_as_json(value, type) -%}
    {%- set number = "^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$" -%}
    {%- set quoted = "to_json(array(" ~ value ~ "))" -%}
    case
        when coalesce({{ value }}, '') = '' then 'null'
        {%- if type in ('tinyint', 'smallint', 'int', 'bigint') %}
        when {{ value }} rlike '{{ number }}' then cast(cast({{ value }} as decimal(38, 0)) as string)
        {%- elif type.startswith(('decimal', 'float', 'double')) %}
        when {{ value }} rlike '{{ number }}' then {{ value }}
        {%- elif type == 'boolean' %}
        when lower({{ value }}) in ('true', 'false') then lower({{ value }})
        {%- endif %}
        else substring({{ quoted }}, 2, length({{ quoted }}) - 2)
    end
{%- endmacro %}

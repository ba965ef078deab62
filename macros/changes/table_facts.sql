{#- What the catalog says of a table: its name as events have it, format, location, partition columns. -#}
{% macro table_facts(relation) -%}
    {%- set facts = {} -%}
    {%- set partition_columns = [] -%}
    {%- set place = namespace(section='') -%}
    {%- for name, said in heartbeat.rows_of("describe table extended " ~ relation, 2) -%}
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

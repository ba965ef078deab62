{#- Writes rows into one of the tables in one commit that a second try repeats: in place of those that a condition finds,
    or of all. A table that is not there is made of them. The rows: `source`, what follows `from` with the alias `given`, the
    `names` of their columns, and the `values` of columns that are not filled by their like. -#}
{% macro refresh_fill(load, name, rows, condition=none) -%}
    {%- set relation = load.tables[name] -%}
    {%- set is_there = load_relation(relation) is not none -%}
    {%- if not is_there -%}
        {%- set shape = load.columns | list -%}
        {%- for column, type in heartbeat.refresh_system_columns(load.settings, name).items() -%}
            {%- do shape.append({'name': column, 'quoted': adapter.quote(column), 'type': type}) -%}
        {%- endfor -%}
        {%- do load.shapes.update({relation | string: shape}) -%}
    {%- endif -%}
    {%- set query = "select " ~ heartbeat.refresh_values_for(load, relation, rows.names, 'given', rows.get('values', {}))
        ~ " from " ~ rows.source -%}
    {%- if not is_there -%}
        {%- do heartbeat.refresh_create(load, name, relation, query) -%}
    {%- elif condition is none -%}
        {%- do run_query("insert overwrite " ~ relation ~ " " ~ query) -%}
    {%- else -%}
        {%- do run_query("insert into " ~ relation ~ " replace where " ~ condition ~ " " ~ query) -%}
    {%- endif -%}
{%- endmacro %}

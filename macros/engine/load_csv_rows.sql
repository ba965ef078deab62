{#- dbt-spark's session method writes an empty cell as the word 'None' and breaks on an apostrophe. This one writes
    every cell as a literal of its own: null stays null, text stays text. -#}
{% macro spark__load_csv_rows(model, agate_table) %}
    {%- set column_types = model['config'].get('column_types', {}) -%}
    {%- set batch_size = 5000 -%}
    {%- set statements = [] -%}
    {%- for rows in agate_table.rows | batch(batch_size) -%}
        {%- set sql -%}
            insert into {{ this.render() }} values
            {%- for row in rows %}
                (
                {%- for value in row -%}
                    {%- set name = agate_table.column_names[loop.index0] -%}
                    {%- set inferred = adapter.convert_type(agate_table, loop.index0) -%}
                    {{ heartbeat._sql_literal(value, column_types.get(name, inferred)) }}
                    {{- "," if not loop.last -}}
                {%- endfor -%}
                ){{ "," if not loop.last }}
            {%- endfor %}
        {%- endset -%}
        {%- do adapter.add_query(sql, abridge_sql_log=True) -%}
        {%- do statements.append(sql) if loop.first -%}
    {%- endfor -%}
    {{ return(statements[0]) }}
{% endmacro %}

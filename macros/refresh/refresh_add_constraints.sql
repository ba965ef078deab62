{#- Gives a new hub the constraints of its model's contract: `not_null` as a check, since Delta does not take NULLs away from a
    column that is there. -#}
{% macro refresh_add_constraints(relation, node) -%}
    {#- The two adapters have a macro of this name that wants different things. -#}
    {%- do alter_table_add_constraints(relation, node if adapter.type() == 'databricks' else node.constraints) -%}
    {%- for name, column in node.columns.items() if 'not_null' in column.constraints | map(attribute='type') | list -%}
        {%- do run_query("alter table " ~ relation ~ " add constraint " ~ adapter.quote(name ~ "_is_not_null") ~ " check ("
            ~ adapter.quote(name) ~ " is not null)") -%}
    {%- endfor -%}
{%- endmacro %}

{#- The rows of a table that changed between the two ends of the run payload, as a subselect: the columns of the table
    and `_change_type`. The same rows as harness.toolkit.changes.changed_rows gives. -#}
{% macro changed_rows(relation, events=none, keys=none, preimages=false) -%}
    {%- if not execute or flags.EMPTY or model.resource_type == 'unit_test' -%}
        {%- do return("(select *, 'insert' as _change_type from " ~ relation ~ ")") -%}
    {%- endif -%}
    {%- set keys = [keys] if keys is string else keys or [] -%}
    {%- set table = heartbeat._table_facts(relation) -%}
    {%- set range = heartbeat._range_of_changes(relation, table, events) -%}
    {%- set range = heartbeat._available_range(relation, table, range) -%}
    {%- if range.why is defined -%}
        {%- do log("changed_rows of " ~ table.name ~ ": " ~ range.why, info=true) -%}
    {%- endif -%}
    {%- if range.since is not none and not range.is_nothing and table.format != 'HIVE' -%}
        {%- set columns = heartbeat._columns_to_compare(relation, range, keys) -%}
        {%- if columns is not none -%}
            {%- do return("(" ~ heartbeat._net_changes_sql(relation, range, columns, keys, preimages) ~ ")") -%}
        {%- endif -%}
        {%- do log("changed_rows of " ~ table.name ~ ": a column is of another type than before, so all rows "
            ~ "are given", info=true) -%}
    {%- endif -%}
    {%- do return("(" ~ heartbeat._gained_rows_sql(relation, table, range) ~ ")") -%}
{%- endmacro %}

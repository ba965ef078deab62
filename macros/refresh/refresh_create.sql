{#- Creates or replaces one of the tables of a refresh from a query. A run gives the hub all that the model's config
    asks for; an operation, to which dbt gives no config, what stands there of partitions and properties. -#}
{% macro refresh_create(load, name, relation, query) -%}
    {%- do load.shapes.pop(relation | string, none) -%}
    {%- do adapter.cache_added(relation) -%}
    {%- set is_asked = name == 'hub' and not load.is_operation -%}
    {%- set properties = heartbeat.refresh_properties(load, name) -%}
    {%- if is_asked and not load.config.get('contract', {}).enforced -%}
        {%- do run_query(create_table_as(false, relation, query)) -%}
        {%- if properties and load.settings.type == 'key' -%}
            {%- do run_query("alter table " ~ relation ~ " set " ~ properties) -%}
        {%- endif -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set by = ['s_input_id'] if name == 'batches' or name == 'history' and load.settings.type == 'full' else [] -%}
    {%- if name == 'hub' -%}
        {%- set given = load.config.get('partition_by') or [] -%}
        {%- set by = [given] if given is string else given -%}
    {%- endif -%}
    {%- set root = load.config.get('location_root') if is_asked else none -%}
    {%- set rows = "select * from (" ~ query ~ ") where false" if is_asked else query -%}
    {%- do run_query("create or replace table " ~ relation ~ " using delta"
        ~ (" partitioned by (" ~ by | join(", ") ~ ")" if by else "")
        ~ " " ~ properties
        ~ (" location '" ~ root ~ "/" ~ relation.identifier ~ "'" if root else "")
        ~ (" " ~ comment_clause() if is_asked else "") ~ " as " ~ rows) -%}
    {%- if is_asked -%}
        {#- dbt holds the contract against all columns of a table, of which a hub has more than the model. It is there before the
            first row: a row that breaks it must not be in the hub when the next run goes on. -#}
        {%- do heartbeat.refresh_add_constraints(relation, model) -%}
        {%- do run_query("insert into " ~ relation ~ " " ~ query) -%}
    {%- endif -%}
{%- endmacro %}

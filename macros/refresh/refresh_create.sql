{#- Creates or replaces one of the tables of a refresh from a query. A run gives the hub all that the model's config
    asks for; an operation, to which dbt gives no config, what stands there of partitions and properties. -#}
{% macro refresh_create(load, name, relation, query) -%}
    {%- do load.shapes.pop(relation | string, none) -%}
    {%- do adapter.cache_added(relation) -%}
    {%- set is_asked = name == 'hub' and not load.is_operation -%}
    {%- if is_asked and not load.config.get('contract', {}).enforced -%}
        {%- do run_query(create_table_as(false, relation, query)) -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set by = ['s_input_id'] if name == 'batches' or name == 'history' and load.settings.type == 'full' else [] -%}
    {%- set properties = [] -%}
    {%- if name == 'hub' -%}
        {%- set given = load.config.get('partition_by') or [] -%}
        {%- set by = [given] if given is string else given -%}
        {%- for key, value in (load.config.get('tblproperties') or {}).items() -%}
            {%- do properties.append("'" ~ key ~ "' = '" ~ value ~ "'") -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set rows = "select * from (" ~ query ~ ") where false" if is_asked else query -%}
    {%- do run_query("create or replace table " ~ relation ~ " using delta"
        ~ (" partitioned by (" ~ by | join(", ") ~ ")" if by else "")
        ~ (" tblproperties (" ~ properties | join(", ") ~ ")" if properties else "")
        ~ (" " ~ location_clause() ~ " " ~ comment_clause() if is_asked else "") ~ " as " ~ rows) -%}
    {%- if is_asked -%}
        {#- dbt holds the contract against all columns of a table, of which a hub has more than the model. It is there before the
            first row: a row that breaks it must not be in the hub when the next run goes on. -#}
        {%- do heartbeat.refresh_add_constraints(relation, model) -%}
        {%- do run_query("insert into " ~ relation ~ " " ~ query) -%}
    {%- endif -%}
{%- endmacro %}

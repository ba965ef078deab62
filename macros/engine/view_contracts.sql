{#- dbt checks the contract of a model by a query around its SQL, which Spark analyses twice: for a view that reads nine
    others that takes longer than creating it. The catalog has the columns of the view once it is created, so the local
    engine checks them then. -#}
{% macro spark__get_assert_columns_equivalent(sql) %}
    {%- if not _is_checked_when_created() -%}
        {{- return(assert_columns_equivalent(sql)) -}}
    {%- endif -%}
{% endmacro %}

{#- Fails a view whose columns are not those of its contract. -#}
{% macro check_created_view() %}
    {%- if execute and _is_checked_when_created() -%}
        {%- set created = format_columns(adapter.get_columns_in_relation(this)) -%}
        {%- set wanted = format_columns(get_column_schema_from_query(get_empty_schema_sql(model['columns']))) -%}
        {%- if created | sort(attribute='name') != wanted | sort(attribute='name') -%}
            {%- do exceptions.raise_contract_error(wanted, created) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}

{% macro _is_checked_when_created() %}
    {{- return(target.type == 'spark' and config.get('contract').enforced and config.get('materialized') == 'view') -}}
{% endmacro %}

{#- Puts versions of some keys in the place of all rows of these keys, in one commit. `values` says what fills a column
    that is not filled by its like. -#}
{% macro refresh_exchange(load, relation, affected, condition, values) -%}
    {%- set columns, inserted = [], [] -%}
    {%- for column in heartbeat.refresh_shape(load, relation) -%}
        {%- do columns.append(column.quoted) -%}
        {%- do inserted.append(values.get(column.name, "change." ~ column.quoted)) -%}
    {%- endfor -%}
    {%- set versions = load.tables.versions -%}
    {%- set query -%}
        merge into {{ relation }} as this
        using (
            select given.*, false as s_is_old
            from {{ versions }} as given
            where {{ condition }}
            union all
            select {{ heartbeat.refresh_values_for(load, versions, load.settings.key, 'affected') }}, true as s_is_old
            from ({{ affected }}) as affected
        ) as change
        on change.s_is_old and {{ heartbeat.refresh_same_key(load.settings, 'this', 'change') }}
        when matched then delete
        when not matched and not change.s_is_old
            then insert ({{ columns | join(", ") }}) values ({{ inserted | join(", ") }})
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

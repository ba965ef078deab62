{#- Puts staged rows in the place of all rows of some keys, in one commit. `renamed` says which staged column fills a
    column of another name. -#}
{% macro refresh_exchange(load, relation, affected, condition, renamed) -%}
    {%- set columns, values = [], [] -%}
    {%- for name in heartbeat.refresh_shape(load, relation) | map(attribute='name') -%}
        {%- do columns.append(adapter.quote(name)) -%}
        {%- do values.append("change." ~ adapter.quote(renamed.get(name, name))) -%}
    {%- endfor -%}
    {%- set query -%}
        merge into {{ relation }} as this
        using (
            select staged.*, false as s_is_old
            from {{ load.tables.staging }} as staged
            where {{ condition }}
            union all
            select {{ heartbeat.refresh_values_for(load, load.tables.staging, load.settings.key, 'affected') }}, true as s_is_old
            from ({{ affected }}) as affected
        ) as change
        on change.s_is_old and {{ heartbeat.refresh_same_key(load.settings, 'this', 'change') }}
        when matched then delete
        when not matched and not change.s_is_old
            then insert ({{ columns | join(", ") }}) values ({{ values | join(", ") }})
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

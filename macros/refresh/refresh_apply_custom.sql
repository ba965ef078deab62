{#- Deletes from the hub what a custom batch finds true of it and adds what passes its filter, in one commit: each row of the batch
    is there once to delete and, where it passes, once to be added. A condition that is unknown deletes nothing. -#}
{% macro refresh_apply_custom(load, batch, is_redo) -%}
    {%- set settings, hub, archive = load.settings, load.tables.hub, load.tables.batches -%}
    {#- Rows of the batch in the hub came with its one commit. If it had none to add, to delete again changes nothing. -#}
    {%- if is_redo and heartbeat.rows_of("select 1 from " ~ hub ~ " where s_input_id = " ~ batch.id ~ " limit 1") -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set given = heartbeat.refresh_shape(load, archive) | map(attribute='name') | map('lower') | list -%}
    {%- set columns, inserted = [], [] -%}
    {%- for column in heartbeat.refresh_shape(load, hub) -%}
        {%- do columns.append(column.quoted) -%}
        {%- do inserted.append("input." ~ column.quoted if column.name | lower in given else "cast(null as " ~ column.type ~ ")") -%}
    {%- endfor -%}
    {%- set query -%}
        merge into {{ hub }} as this
        using (
            select input.*, false as s_is_added from {{ archive }} as input where s_input_id = {{ batch.id }}
            union all
            select input.*, true as s_is_added from {{ archive }} as input
            where s_input_id = {{ batch.id }}{{ " and (" ~ settings.append_filter ~ ")" if settings.append_filter }}
        ) as input
        on not input.s_is_added and ({{ settings.delete_condition }})
        when matched then delete
        when not matched and input.s_is_added
            then insert ({{ columns | join(", ") }}) values ({{ inserted | join(", ") }})
    {%- endset -%}
    {%- for _, _, deleted, added in heartbeat.rows_of(query, 4) -%}
        {%- for code, count in {'D': deleted, 'N': added}.items() if count | int -%}
            {%- do batch.code_counts.update({code: count | int}) if batch.code_counts else batch.update(code_counts={code: count | int}) -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro %}

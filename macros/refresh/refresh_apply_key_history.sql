{#- Opens and closes versions in the history of a key refresh. -#}
{% macro refresh_apply_key_history(load, batches, is_redo) -%}
    {%- set history = load.tables.history -%}
    {%- set of_batches = "from " ~ history ~ " where " ~ heartbeat.refresh_of_batches(batches) ~ " limit 1" -%}
    {%- if is_redo and heartbeat.rows_of("select 1 " ~ of_batches) -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set columns, inserted = [], [] -%}
    {%- for column in heartbeat.refresh_shape(load, history) -%}
        {%- do columns.append(column.quoted) -%}
        {%- do inserted.append("change." ~ column.quoted) -%}
    {%- endfor -%}
    {%- set query -%}
        merge into {{ history }} as this
        using (
            {{ heartbeat.refresh_history_steps(load, batches) }}
        ) as change
        on {{ heartbeat.refresh_same_key(load.settings, 'this', 'change') }}
            and {{ heartbeat.refresh_in_bounds(load, batches, 'this') }}
            and this.s_effective_to is null and change.s_step <> 'open'
        when matched and change.s_step = 'close'
            then update set
                s_effective_to = change.s_effective_to,
                s_update_timestamp = greatest(this.s_update_timestamp, change.s_touched_at)
        when not matched and change.s_step in ('open', 'keep')
            then insert ({{ columns | join(", ") }}) values ({{ inserted | join(", ") }})
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

{#- Opens and closes versions in the history of a key refresh. -#}
{% macro refresh_apply_key_history(load, batch, is_redo) -%}
    {%- set history = load.tables.history -%}
    {%- set of_batch = "from " ~ history ~ " where s_input_id = " ~ batch.id ~ " limit 1" -%}
    {%- if is_redo and heartbeat.rows_of("select 1 " ~ of_batch) -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set values = {'s_effective_from': 'change.s_update_timestamp', 's_effective_to': 'null'} -%}
    {%- set columns, inserted = [], [] -%}
    {%- for name in heartbeat.refresh_shape(load, history) | map(attribute='name') -%}
        {%- do columns.append(adapter.quote(name)) -%}
        {%- do inserted.append(values.get(name, "change." ~ adapter.quote(name))) -%}
    {%- endfor -%}
    {%- set query -%}
        merge into {{ history }} as this
        using (
            {{ heartbeat.refresh_history_steps(load, batch) }}
        ) as change
        on {{ heartbeat.refresh_same_key(load.settings, 'this', 'change') }}
            and this.s_effective_to is null and change.s_step <> 'open'
        when matched and change.s_step = 'close'
            then update set s_effective_to = change.s_update_timestamp
        when matched and change.s_step = 'touch'
            then update set s_update_timestamp = change.s_update_timestamp
        when not matched and change.s_step in ('open', 'keep')
            then insert ({{ columns | join(", ") }}) values ({{ inserted | join(", ") }})
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

{#- Merges the rows that count into the hub; a row that these batches have seen already is left as it is. -#}
{% macro refresh_apply_key_hub(load, batches) -%}
    {%- set columns, assigned = [], [] -%}
    {%- for column in heartbeat.refresh_shape(load, load.tables.hub) -%}
        {%- do columns.append(column.quoted) -%}
        {%- do assigned.append(column.quoted ~ " = change." ~ column.quoted) -%}
    {%- endfor -%}
    {%- set is_new = "this.s_seen_input_id < change.s_seen_input_id" -%}
    {%- set query -%}
        merge into {{ load.tables.hub }} as this
        using (
            {{ heartbeat.refresh_last_rows(load, batches) }}
        ) as change
        on {{ heartbeat.refresh_same_key(load.settings, 'this', 'change') }}
        when matched and {{ is_new }} and change.s_record_status_code = 'S'
            then update set s_update_timestamp = change.s_update_timestamp, s_seen_input_id = change.s_seen_input_id
        when matched and {{ is_new }} and change.s_record_status_code = 'D'
            {%- if load.settings['deletes.mode'] == 'soft' %}
            then update set
                s_update_timestamp = change.s_update_timestamp, s_deleted_flag = true,
                s_input_id = change.s_input_id, s_seen_input_id = change.s_seen_input_id
            {%- else %}
            then delete
            {%- endif %}
        when matched and {{ is_new }} and change.s_record_status_code in ('N', 'C')
            then update set {{ assigned | join(", ") }}
        when not matched and change.s_record_status_code in ('N', 'C')
            then insert ({{ columns | join(", ") }}) values (change.{{ columns | join(", change.") }})
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

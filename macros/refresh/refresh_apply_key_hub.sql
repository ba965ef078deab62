{#- Merges the rows that count into the hub; a row that these batches have seen already is left as it is. Where no key is new
    (`has_new`), no row is added, and Delta need not shuffle the hub for those that it does not find. -#}
{% macro refresh_apply_key_hub(load, batches, has_new) -%}
    {%- set columns, given, assigned = [], [], [] -%}
    {%- for column in heartbeat.refresh_shape(load, load.tables.hub) -%}
        {%- set value = "change." ~ ("s_hub_code" if column.name == "s_record_status_code" else column.quoted) -%}
        {%- do columns.append(column.quoted) -%}
        {%- do given.append(value) -%}
        {%- do assigned.append(column.quoted ~ " = " ~ value) -%}
    {%- endfor -%}
    {%- set is_new = "this.s_seen_input_id < change.s_seen_input_id" -%}
    {%- set query -%}
        merge into {{ load.tables.hub }} as this
        using (
            {{ heartbeat.refresh_last_rows(load, batches) }}
        ) as change
        on {{ heartbeat.refresh_same_key(load.settings, 'this', 'change') }}
            and {{ heartbeat.refresh_in_bounds(load, batches, 'this') }}
        when matched and {{ is_new }} and change.s_record_status_code = 'S'
            then update set
                s_update_timestamp = change.s_update_timestamp, s_seen_input_id = change.s_seen_input_id,
                s_record_status_code = change.s_hub_code
        when matched and {{ is_new }} and change.s_record_status_code = 'D'
            {%- if load.settings['deletes.mode'] == 'soft' %}
            then update set
                s_update_timestamp = change.s_update_timestamp, s_deleted_flag = true,
                s_input_id = change.s_input_id, s_seen_input_id = change.s_seen_input_id,
                s_record_status_code = change.s_hub_code
            {%- else %}
            then delete
            {%- endif %}
        when matched and {{ is_new }} and change.s_record_status_code in ('N', 'C')
            then update set {{ assigned | join(", ") }}
        {%- if has_new %}
        when not matched and change.s_record_status_code in ('N', 'C')
            then insert ({{ columns | join(", ") }}) values ({{ given | join(", ") }})
        {%- endif %}
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

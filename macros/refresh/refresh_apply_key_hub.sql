{#- Merges the rows that count into the hub; a row that this batch has seen already is left as it is. -#}
{% macro refresh_apply_key_hub(load, batch) -%}
    {%- set columns, inserted, assigned = [], [], [] -%}
    {%- for name in heartbeat.refresh_shape(load, load.tables.hub) | map(attribute='name') -%}
        {%- set quoted = adapter.quote(name) -%}
        {%- do columns.append(quoted) -%}
        {%- do inserted.append(batch.id | string if name == 's_seen_input_id' else "change." ~ quoted) -%}
        {%- do assigned.append(quoted ~ " = " ~ inserted[-1]) -%}
    {%- endfor -%}
    {%- set is_new = "this.s_seen_input_id < " ~ batch.id -%}
    {%- set codes = ['N', 'C', 'D'] + (['S'] if load.settings.unchanged_newer == 'touch' else []) -%}
    {%- set query -%}
        merge into {{ load.tables.hub }} as this
        using (
            select * from {{ load.tables.batches }}
            where s_input_id = {{ batch.id }} and s_record_status_code in ('{{ codes | join("', '") }}')
        ) as change
        on {{ heartbeat.refresh_same_key(load.settings, 'this', 'change') }}
        when matched and {{ is_new }} and change.s_record_status_code = 'S'
            then update set s_update_timestamp = change.s_update_timestamp, s_seen_input_id = {{ batch.id }}
        when matched and {{ is_new }} and change.s_record_status_code = 'D'
            {%- if load.settings['deletes.mode'] == 'soft' %}
            then update set
                s_update_timestamp = change.s_update_timestamp, s_deleted_flag = true,
                s_input_id = {{ batch.id }}, s_seen_input_id = {{ batch.id }}
            {%- else %}
            then delete
            {%- endif %}
        when matched and {{ is_new }} and change.s_record_status_code in ('N', 'C')
            then update set {{ assigned | join(", ") }}
        when not matched and change.s_record_status_code in ('N', 'C')
            then insert ({{ columns | join(", ") }}) values ({{ inserted | join(", ") }})
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

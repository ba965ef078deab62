{#- Works out hub and history of some keys anew from batches in the archive, and replaces them, one commit each. -#}
{% macro refresh_fold_keys(load, affected, live, names) -%}
    {%- do heartbeat.refresh_make_staging(load, heartbeat.refresh_versions(load, affected, live), 'versions') -%}
    {%- if 'hub' in names -%}
        {%- set values = {'s_update_timestamp': 'change.s_touched_at', 's_record_status_code': 'change.s_hub_code'} -%}
        {%- if load.settings['deletes.mode'] == 'soft' -%}
            {%- for column in load.columns if column.name | lower not in load.settings.key | map('lower') -%}
                {%- do values.update({column.name: "if(change.s_deleted_flag, change.s_kept." ~ column.quoted
                    ~ ", change." ~ column.quoted ~ ")"}) -%}
            {%- endfor -%}
            {%- set is_current = "given.s_is_last and (not given.s_deleted_flag or given.s_kept is not null)" -%}
        {%- else -%}
            {%- set is_current = "given.s_is_last and not given.s_deleted_flag" -%}
        {%- endif -%}
        {%- do heartbeat.refresh_exchange(load, load.tables.hub, affected, is_current, values) -%}
    {%- endif -%}
    {%- if 'history' in names -%}
        {#- It is last: it may be all that knows which keys are affected. -#}
        {%- do heartbeat.refresh_exchange(load, load.tables.history, affected, 'given.s_is_version', {}) -%}
    {%- endif -%}
    {%- do run_query("drop table if exists " ~ load.tables.versions) -%}
{%- endmacro %}

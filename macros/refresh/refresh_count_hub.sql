{#- Counts how many rows of the hub have which code once some batches are in it or out of it (`hub_code_counts`), unless the model
    does without (`count_hub`): it reads one column of all rows. -#}
{% macro refresh_count_hub(load, batches) -%}
    {%- if load.settings.count_hub -%}
        {%- set counts = {} -%}
        {%- set query = "select s_record_status_code, count(*) from " ~ load.tables.hub ~ " group by 1 order by 1" -%}
        {%- for code, count in heartbeat.rows_of(query, 2) -%}
            {%- do counts.update({code: count}) -%}
        {%- endfor -%}
        {%- for batch in batches -%}
            {%- do batch.update(hub_code_counts=counts) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{#- Counts the keys of each batch that have rows of one instant which differ (`conflict_count`), if it has a key twice at all. -#}
{% macro refresh_count_conflicts(load, batches) -%}
    {%- set doubtful = [] -%}
    {%- for batch in batches if 'X' in batch.code_counts -%}
        {%- do doubtful.append(batch) -%}
    {%- endfor -%}
    {%- if doubtful -%}
        {%- set rows = "(select * from " ~ load.tables.batches ~ " where " ~ heartbeat.refresh_of_batches(doubtful) ~ ") as given" -%}
        {%- for id, count in heartbeat.rows_of(heartbeat.refresh_conflicts(load.settings, rows), 2) -%}
            {%- for batch in doubtful if batch.id == id | int -%}
                {%- do batch.update(conflict_count=count) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{#- What a batch does to the history of its keys, as a query: a version is closed and another one opened; that a key is
    deleted is kept even if nobody knew it, and touched when it is heard again. -#}
{% macro refresh_history_steps(load, batch) -%}
    {%- set of_batch = "from " ~ load.tables.batches ~ " where s_input_id = " ~ batch.id -%}
    select *, 'close' as s_step {{ of_batch }} and s_record_status_code in ('N', 'C', 'D')
    union all
    select *, 'open' as s_step {{ of_batch }} and s_record_status_code in ('N', 'C', 'D')
    {%- if load.settings['deletes.when'] %}
    union all
    select *, 'keep' as s_step {{ of_batch }} and s_record_status_code = 'U' and s_deleted_flag
    {%- if load.settings.unchanged_newer == 'touch' %}
    union all
    select *, 'touch' as s_step {{ of_batch }} and s_record_status_code = 'S' and s_deleted_flag
    {%- endif -%}
    {%- endif -%}
{%- endmacro %}

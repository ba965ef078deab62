{#- Writes the rows of a batch into the hub in one commit that replaces what they stand for: their range, or the batch
    itself. A custom refresh deletes before that, in a commit of its own. -#}
{% macro refresh_apply_rows(load, batch) -%}
    {%- set settings = load.settings -%}
    {%- set tables = load.tables -%}
    {%- set of_batch = "s_input_id = " ~ batch.id -%}
    {%- set condition = of_batch -%}
    {%- if settings.column and batch.range_from is not none -%}
        {%- set condition = heartbeat.refresh_in_range(settings, batch) -%}
    {%- elif settings.type == 'custom' -%}
        {%- do run_query("merge into " ~ tables.hub ~ " as this using (select * from " ~ tables.batches ~ " where "
            ~ of_batch ~ ") as input on " ~ settings.delete_condition ~ " when matched then delete") -%}
    {%- endif -%}
    {%- set given = heartbeat.refresh_shape(load, tables.batches) | map(attribute='name') | list -%}
    {%- set query -%}
        insert into {{ tables.hub }} replace where {{ condition }}
        select {{ heartbeat.refresh_values_for(load, tables.hub, given, 'input') }}
        from {{ tables.batches }} as input
        where {{ of_batch }} and s_record_status_code is null
        {%- if settings.append_filter %}
            and ({{ settings.append_filter }})
        {%- endif %}
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

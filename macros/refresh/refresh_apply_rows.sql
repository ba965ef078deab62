{#- Writes the rows of a batch into the hub in one commit that replaces what they stand for: their range, or the batch
    itself. A custom refresh deletes before that, in a commit of its own. -#}
{% macro refresh_apply_rows(load, batch) -%}
    {%- set settings = load.settings -%}
    {%- set tables = load.tables -%}
    {%- set of_batch = "s_input_id = " ~ batch.id -%}
    {%- set condition, is_first = of_batch, heartbeat.refresh_is_first(load, batch) -%}
    {%- if is_first -%}
        {%- set condition = none -%}
    {%- elif settings.column and batch.range_from is not none -%}
        {%- set condition = heartbeat.refresh_in_range(settings, batch) -%}
    {%- elif settings.type == 'custom' -%}
        {%- do run_query("merge into " ~ tables.hub ~ " as this using (select * from " ~ tables.batches ~ " where "
            ~ of_batch ~ ") as input on " ~ settings.delete_condition ~ " when matched then delete") -%}
    {%- endif -%}
    {%- set given = heartbeat.refresh_shape(load, tables.batches) | map(attribute='name') | list -%}
    {%- set rows = "(select * from " ~ tables.batches ~ " as input where " ~ of_batch ~ " and s_record_status_code is null"
        ~ (" and (" ~ settings.append_filter ~ ")" if settings.append_filter else "") ~ ") as given" -%}
    {%- do heartbeat.refresh_fill(load, 'hub', {'names': given, 'source': rows}, condition) -%}
{%- endmacro %}

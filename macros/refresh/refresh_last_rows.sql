{#- What batches leave of each key, a row for each, as a query over the archive: the last row that makes it another one, with
    the instant and the batch of the last one that counts (`s_seen_input_id`). -#}
{% macro refresh_last_rows(load, batches) -%}
    {%- set codes = ['N', 'C', 'D'] + (['S'] if load.settings.unchanged_newer == 'touch' else []) -%}
    {%- set by_key = "over (partition by " ~ heartbeat.refresh_names(load.settings.key) -%}
    {%- set is_alone = batches | length == 1 -%}
    select *, if(s_seen_input_id > s_input_id, 'S', s_record_status_code) as s_hub_code
    from (
        select
            given.* except (s_update_timestamp),
            {{ "s_update_timestamp" if is_alone else "max(s_update_timestamp) " ~ by_key ~ ")" }} as s_update_timestamp,
            {{ "s_input_id" if is_alone else "max(s_input_id) " ~ by_key ~ ")" }} as s_seen_input_id,
            {{ "1" if is_alone else "row_number() " ~ by_key ~ " order by s_record_status_code = 'S', s_input_id desc)" }} as s_place
        from {{ load.tables.batches }} as given
        where {{ heartbeat.refresh_of_batches(batches) }} and s_record_status_code in ('{{ codes | join("', '") }}')
    )
    where s_place = 1
{%- endmacro %}

{#- The query for what the staged rows say of each batch, a row of JSON for each, in the order of what tells them apart: of
    numbers, 10 comes after 9. -#}
{% macro refresh_facts_query(load) -%}
    {%- set range, batch_by = heartbeat.refresh_range_value(load.settings), load.settings.batch_by -%}
    {%- set keys, bounds = [], [] -%}
    {%- for column in heartbeat.refresh_bounded_keys(load) -%}
        {%- do keys.append(column.quoted) -%}
        {%- do bounds.append("array(cast(min(" ~ column.quoted ~ ") as string), cast(max(" ~ column.quoted ~ ") as string))") -%}
    {%- endfor -%}
    with read as (
        select
            {% for key in keys %}{{ key }}, {% endfor %}
            s_batch,
            {{ adapter.quote(batch_by) if batch_by else "null" }} as s_place,
            {% if load.settings.watermark %}{{ adapter.quote(load.settings.watermark) }} as s_watermark, {% endif %}
            {{ heartbeat.refresh_hash(load.columns) }} as s_whole,
            {{ heartbeat.refresh_derived(load) }}
        from {{ load.tables.staging }}
    )
    select to_json(named_struct(
        'batch', s_batch,
        'record_count', count(*),
        'fingerprint', concat_ws(' ', count(*), bit_xor(xxhash64(s_whole, 7)), sum(cast(s_whole as decimal(38, 0)))),
        'range_from', cast(min({{ range }}) as string),
        'range_to', cast(max({{ range }}) as string),
        'bounds', cast(array({{ bounds | join(", ") }}) as array<array<string>>),
        'watermark', {{ heartbeat.refresh_watermark_value(load) }},
        'rejected', count_if(s_is_rejected),
        'deleted', {{ "count_if(s_deleted_flag and not s_is_rejected)" if load.settings.type == 'key' else "0" }}
    ), map('ignoreNullFields', 'false'))
    from read
    group by s_batch
    {{ "order by min(s_place)" if batch_by }}
{%- endmacro %}

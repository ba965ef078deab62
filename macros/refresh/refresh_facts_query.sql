{#- The query for what the staged rows say of each batch, a row for each. -#}
{% macro refresh_facts_query(load) -%}
    {%- set range = heartbeat.refresh_range_value(load.settings) -%}
    with read as (
        select
            s_batch,
            {{ heartbeat.refresh_hash(load.columns) }} as s_whole,
            {{ heartbeat.refresh_derived(load) }}
        from {{ load.tables.staging }}
    )
    select
        s_batch,
        count(*),
        concat_ws(' ', count(*), bit_xor(xxhash64(s_whole, 7)), sum(cast(s_whole as decimal(38, 0)))),
        cast(min({{ range }}) as string),
        cast(max({{ range }}) as string),
        count_if(s_is_rejected),
        {{ "count_if(s_deleted_flag and not s_is_rejected)" if load.settings.type == 'key' else "0" }}
    from read
    group by s_batch
    order by s_batch
{%- endmacro %}

{#- The query for what the staged rows say of each batch, a row for each. -#}
{% macro refresh_facts_query(load) -%}
    {%- set range = heartbeat.refresh_range_value(load.settings) -%}
    {%- set keys = heartbeat.refresh_names(load.settings.key or []) -%}
    {%- set keys = "struct(" ~ keys ~ ")" if "," in keys else keys -%}
    with read as (
        select
            s_batch,
            {{ keys ~ " as s_key," if keys }}
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
        {%- if keys %}
        count_if(s_deleted_flag and not s_is_rejected),
        count_if(not s_is_rejected) = count(distinct if(s_is_rejected, null, s_key))
        {%- else %}
        0,
        false
        {%- endif %}
    from read
    group by s_batch
    order by s_batch
{%- endmacro %}

{#- Whether a large batch that is brought in alone has no key twice, so that its rows need not be sorted by key. To sort a
    smaller one takes no longer than to ask. -#}
{% macro refresh_has_each_key_once(load, batches) -%}
    {%- set batch = batches[0] -%}
    {%- if batches | length > 1 or batch.record_count < var('heartbeat_large_batch', 1000000) | int -%}
        {%- do return(false) -%}
    {%- endif -%}
    {%- set keys = heartbeat.refresh_names(load.settings.key) -%}
    {%- set query -%}
        select count(*) - count(distinct {{ "struct(" ~ keys ~ ")" if load.settings.key | length > 1 else keys }})
        from (select *, {{ heartbeat.refresh_derived(load) }} from {{ load.tables.staging }})
        where s_batch <=> {{ heartbeat.seed_literal(batch.batch, 'string') }} and not s_is_rejected
    {%- endset -%}
    {%- do return(heartbeat.rows_of(query)[0][0] | int == 0) -%}
{%- endmacro %}

{#- What the staged rows say of each batch: how many there are, what they look like together in whatever order, which
    range they span, and how many have to be rejected. -#}
{% macro refresh_batch_facts(load) -%}
    {%- set range = heartbeat.refresh_range_value(load.settings) -%}
    {%- set query -%}
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
            count_if(s_is_rejected)
        from read
        group by s_batch
        order by s_batch
    {%- endset -%}
    {%- set facts = [] -%}
    {%- for batch, count, fingerprint, least, greatest, rejected in heartbeat.rows_of(query, 6) -%}
        {%- do facts.append({'batch': batch, 'record_count': count | int, 'fingerprint': fingerprint,
            'range_from': least, 'range_to': greatest, 'rejected': rejected | int}) -%}
    {%- endfor -%}
    {%- if not facts and (load.is_operation or not load.settings.batch_by) -%}
        {%- do facts.append({'batch': none, 'record_count': 0, 'rejected': 0,
            'fingerprint': none, 'range_from': none, 'range_to': none}) -%}
    {%- endif -%}
    {%- do return(facts) -%}
{%- endmacro %}

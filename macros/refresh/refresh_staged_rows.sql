{#- The staged rows of batches with what follows from each of them, as a query; without a key the only code is R. -#}
{% macro refresh_staged_rows(load, batches) -%}
    select
        staged.*,
        if(s_is_rejected, 'R', cast(null as string)) as s_record_status_code
    from (
        select
            *,
            {{ heartbeat.refresh_derived(load) }},
            cast(case
                {%- for batch in batches %}
                when s_batch <=> {{ heartbeat.seed_literal(batch.batch, 'string') }} then {{ batch.id }}
                {%- endfor %}
            end as bigint) as s_input_id
        from {{ load.tables.staging }}
    ) as staged
    where s_input_id is not null
{%- endmacro %}

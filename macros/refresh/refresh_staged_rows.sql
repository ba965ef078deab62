{#- The staged rows of one batch with what follows from each of them, as a query; without a key the only code is R. -#}
{% macro refresh_staged_rows(load, batch) -%}
    select
        staged.*,
        cast({{ batch.id }} as bigint) as s_input_id,
        if(s_is_rejected, 'R', cast(null as string)) as s_record_status_code
    from (
        select *, {{ heartbeat.refresh_derived(load) }}
        from {{ load.tables.staging }}
        where s_batch <=> {{ heartbeat.seed_literal(batch.batch, 'string') }}
    ) as staged
{%- endmacro %}

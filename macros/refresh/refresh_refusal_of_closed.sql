{#- Why a batch must not change its range, as a sentence: rows of a closed period would be others than they are. -#}
{% macro refresh_refusal_of_closed(load, batch) -%}
    {%- set closed, hub = load.settings.immutable_where, load.tables.hub -%}
    {%- if closed is none or load.is_replay or load_relation(hub) is none -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set query -%}
        with given as (
            select {{ heartbeat.refresh_hash(load.columns) }} as s_whole
            from (select *, {{ heartbeat.refresh_derived(load) }} from {{ load.tables.staging }})
            where s_batch <=> {{ heartbeat.seed_literal(batch.batch, 'string') }} and not s_is_rejected and ({{ closed }})
        ),

        held as (
            select {{ heartbeat.refresh_hash(heartbeat.refresh_columns_of(load, hub)) }} as s_whole
            from {{ hub }}
            where {{ heartbeat.refresh_in_range(load.settings, batch) }} and ({{ closed }})
        )

        select count(*)
        from (
            (select s_whole from given except all select s_whole from held)
            union all
            (select s_whole from held except all select s_whole from given)
        )
    {%- endset -%}
    {%- set changed = heartbeat.rows_of(query)[0][0] | int -%}
    {%- if changed -%}
        {%- do return("it would change " ~ changed ~ " rows of the period that immutable_where closes (" ~ closed
            ~ "): leave that period out of the batch, or open it in immutable_where for this run") -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

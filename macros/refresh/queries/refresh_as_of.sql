{#- The rows of a refresh model as of an instant, as a query in brackets that reads its history: of type key by the
    dates of the rows, of type full the batch that was extracted, or received, last. -#}
{% macro refresh_as_of(hub, instant) -%}
    {%- set history = heartbeat.refresh_table(hub, 'history') -%}
    {%- if history == hub -%}
        {%- do return(hub) -%}
    {%- endif -%}
    {%- if load_relation(history) is none -%}
        {%- do exceptions.raise_compiler_error(
            "refresh_as_of: " ~ hub ~ " has no history; refresh models of type key and full have one, unless history is false") -%}
    {%- endif -%}
    {%- set run = heartbeat._refresh_context(heartbeat._refresh_tables(hub)) -%}
    {%- set names = heartbeat._refresh_model_columns(run, history) | map(attribute='quoted') | join(", ") -%}
    {%- if 's_effective_from' in heartbeat._refresh_table_columns(run, history) | map(attribute='name') -%}
        {%- set is_then -%}
            not s_deleted_flag
            and s_effective_from <= {{ instant }}
            and (s_effective_to is null or s_effective_to > {{ instant }})
        {%- endset -%}
    {%- else -%}
        {%- set is_then -%}
            s_input_id = (
                select max_by(s_input_id, struct(known_at, s_input_id))
                from (
                    select
                        s_input_id,
                        newest.state,
                        coalesce(timestamp_micros(cast(newest.range_to as bigint)), newest.received_at) as known_at
                    from ({{ heartbeat._refresh_newest_logged(run, heartbeat._refresh_column_names(run.tables.ledger)) }})
                )
                where state = 'COMPLETE' and known_at <= {{ instant }}
            )
        {%- endset -%}
    {%- endif -%}
    {%- do return("(select " ~ names ~ ", s_input_id from " ~ history ~ " where " ~ is_then ~ ")") -%}
{%- endmacro %}

{#- Keeps a full batch in the history and lets it replace the hub, unless it was extracted before the one that is
    there. -#}
{% macro refresh_apply_full(load, batch) -%}
    {%- set tables = load.tables -%}
    {%- set of_batch = " from " ~ tables.batches ~ " as given where s_input_id = " ~ batch.id -%}
    {%- set given = heartbeat.refresh_shape(load, tables.batches) | map(attribute='name') | list -%}
    {%- do heartbeat.refresh_fill(load, 'history', {'names': given,
        'source': tables.batches ~ " as given where s_input_id = " ~ batch.id}, "s_input_id = " ~ batch.id) -%}
    {%- set live = load.batches | selectattr('state', 'equalto', 'COMPLETE') | rejectattr('id', 'equalto', batch.id) | list -%}
    {%- set newer = [] -%}
    {%- for other in live if other.range_to is not none and batch.range_to is not none
        and other.range_to | int > batch.range_to | int -%}
        {%- do newer.append(other.id) -%}
    {%- endfor -%}
    {%- if not newer -%}
        {%- do heartbeat.refresh_replace_hub(load, of_batch) -%}
    {%- else -%}
        {%- do batch.update(code_counts={'O': batch.record_count}) -%}
    {%- endif -%}
    {%- set kept = load.settings.keep_batches -%}
    {%- set stored = (live | map(attribute='id') | list) + [batch.id] -%}
    {%- if kept is not none and stored | length > kept -%}
        {%- do run_query("delete from " ~ tables.history ~ " where s_input_id not in ("
            ~ (stored | sort)[-kept:] | join(", ") ~ ")") -%}
    {%- endif -%}
{%- endmacro %}

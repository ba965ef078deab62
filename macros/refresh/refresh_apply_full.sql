{#- Keeps full batches in the history and lets the last of them replace the hub, but for those that were extracted before one
    that was received earlier. -#}
{% macro refresh_apply_full(load, batches) -%}
    {%- set tables, ids = load.tables, batches | map(attribute='id') | list -%}
    {%- set given = heartbeat.refresh_shape(load, tables.batches) | map(attribute='name') | list -%}
    {%- set of_batches = heartbeat.refresh_of_batches(batches) -%}
    {%- if load.settings.history -%}
        {%- do heartbeat.refresh_fill(load, 'history', {'names': given,
            'source': tables.batches ~ " as given where " ~ of_batches}, of_batches) -%}
    {%- endif -%}
    {%- set live = load.batches | selectattr('state', 'equalto', 'COMPLETE') | rejectattr('id', 'in', ids) | list -%}
    {%- set newest = [] -%}
    {%- for batch in batches -%}
        {%- set newer = [] -%}
        {%- for other in live if other.range_to is not none and batch.range_to is not none
            and other.range_to | int > batch.range_to | int -%}
            {%- do newer.append(other.id) -%}
        {%- endfor -%}
        {%- if newer -%}
            {%- do batch.update(code_counts={'O': batch.record_count}) -%}
        {%- else -%}
            {%- do newest.append(batch.id) -%}
        {%- endif -%}
        {%- do live.append(batch) -%}
    {%- endfor -%}
    {%- if newest -%}
        {%- do heartbeat.refresh_replace_hub(load, " from " ~ tables.batches ~ " as given where s_input_id = " ~ newest[-1]) -%}
    {%- endif -%}
    {%- set kept = load.settings.keep_batches -%}
    {%- if kept is not none and live | length > kept -%}
        {%- do run_query("delete from " ~ tables.history ~ " where s_input_id not in ("
            ~ (live | map(attribute='id') | sort)[-kept:] | join(", ") ~ ")") -%}
    {%- endif -%}
{%- endmacro %}

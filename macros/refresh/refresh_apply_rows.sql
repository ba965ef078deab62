{#- Writes the rows of batches into the hub in one commit that replaces what they stand for: their ranges, or the batches
    themselves. -#}
{% macro refresh_apply_rows(load, batches) -%}
    {%- set settings, archive = load.settings, load.tables.batches -%}
    {%- set replaced, sources, is_first = [], [], heartbeat.refresh_is_first(load, batches[0]) -%}
    {%- for batch in batches | reverse -%}
        {#- What a later batch covers is its own. -#}
        {%- set left = ["s_input_id = " ~ batch.id] -%}
        {%- for range in replaced -%}
            {%- do left.append("not (" ~ range ~ ")") -%}
        {%- endfor -%}
        {%- do sources.append(left | join(" and ")) -%}
        {%- if settings.column and batch.range_from is not none -%}
            {%- do replaced.append(heartbeat.refresh_in_range(settings, batch)) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set given = heartbeat.refresh_shape(load, archive) | map(attribute='name') | list -%}
    {%- set rows = "(select * from " ~ archive ~ " as input where s_record_status_code is null and (" ~ sources | join(" or ") ~ ")"
        ~ (" and (" ~ settings.append_filter ~ ")" if settings.append_filter else "") ~ ") as given" -%}
    {%- set condition = replaced | join(" or ") or heartbeat.refresh_of_batches(batches) -%}
    {%- do heartbeat.refresh_fill(load, 'hub', {'names': given, 'source': rows},
        none if is_first else condition) -%}
{%- endmacro %}

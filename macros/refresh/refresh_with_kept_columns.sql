{#- The rows of a run with the columns that the model no longer has, as a query, where `missing_columns: keep` leaves in them
    what the hub has; a key that is not in the hub has nothing there. Columns that a setting names have to be the model's. -#}
{% macro refresh_with_kept_columns(load, query) -%}
    {%- set settings, hub = load.settings, load.tables.hub -%}
    {%- if settings.missing_columns != 'keep' or load_relation(hub) is none -%}
        {%- do return(query) -%}
    {%- endif -%}
    {%- set there = [] -%}
    {%- for name, _ in heartbeat.rows_of("describe query " ~ query, 2) -%}
        {%- do there.append(name | lower) -%}
    {%- endfor -%}
    {%- for name, option in heartbeat.refresh_options().items() if option.legal in ('column', 'columns') -%}
        {%- set value = settings.get(name) or [] -%}
        {%- do there.extend(([value] if value is string else value) | map('lower')) -%}
    {%- endfor -%}
    {%- set kept = [] -%}
    {%- for column in heartbeat.refresh_columns_of(load, hub) if column.name | lower not in there -%}
        {%- do kept.append("hub." ~ column.quoted) -%}
    {%- endfor -%}
    {%- if not kept -%}
        {%- do return(query) -%}
    {%- endif -%}
    {%- do return("select given.*, " ~ kept | join(", ") ~ " from (" ~ query ~ ") as given left outer join " ~ hub
        ~ " as hub on " ~ heartbeat.refresh_same_key(settings, "given", "hub")) -%}
{%- endmacro %}

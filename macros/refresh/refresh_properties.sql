{#- The table properties of hub or history: those of the model's config for the hub, and deletion vectors where keys are merged,
    unless the config says something else of them. A merge that changes a few rows of a file then leaves the file as it is. -#}
{% macro refresh_properties(load, name) -%}
    {%- set given = load.config.get('tblproperties') or {} -%}
    {%- set properties = dict(given) if name == 'hub' else {} -%}
    {%- if load.settings.type == 'key' and name in ('hub', 'history') -%}
        {%- set vectors = 'delta.enableDeletionVectors' -%}
        {%- do properties.update({vectors: given.get(vectors, 'true')}) -%}
    {%- endif -%}
    {%- set items = [] -%}
    {%- for key, value in properties.items() -%}
        {%- do items.append("'" ~ key ~ "' = '" ~ value ~ "'") -%}
    {%- endfor -%}
    {%- do return("tblproperties (" ~ items | join(", ") ~ ")" if items else "") -%}
{%- endmacro %}

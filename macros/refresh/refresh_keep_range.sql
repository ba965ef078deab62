{#- Gives a batch that is taken once more the range that it had, which its rows alone may not tell, unless the settings read
    another one now. -#}
{% macro refresh_keep_range(load, fact, batch) -%}
    {%- set before = fromjson(batch.settings) -%}
    {%- set changed = [] -%}
    {%- for name in ['type', 'column', 'format', 'time_zone'] if before.get(name) != load.settings.get(name) -%}
        {%- do changed.append(name) -%}
    {%- endfor -%}
    {%- if load.settings.column and batch.range_from is not none and not changed -%}
        {%- do fact.update(is_declared=true, range_from=batch.range_from | int, range_to=batch.range_to | int,
            fingerprint=batch.fingerprint) -%}
    {%- endif -%}
{%- endmacro %}

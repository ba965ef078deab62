{#- Ends the run when earlier batches were taken with other settings: hub and history would be of two kinds. -#}
{% macro refresh_stop_on_changed_settings(load) -%}
    {%- set shaping = heartbeat.refresh_shaping_settings(load.settings) -%}
    {%- for batch in load.batches if batch.state in ('STAGED', 'COMPLETE') -%}
        {%- set before = fromjson(batch.settings) -%}
        {%- set changed = [] -%}
        {%- for name in ['type'] + shaping.keys() | list -%}
            {#- A setting that the package did not have then meant what it means when it is left out. -#}
            {%- set was = before.get(name, heartbeat.refresh_options()[name].default) -%}
            {%- if was != load.settings.get(name) -%}
                {%- do changed.append(name ~ " was " ~ was ~ " and is " ~ load.settings.get(name)) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if changed -%}
            {%- do exceptions.raise_compiler_error(
                load.name ~ ": meta.refresh has changed since batch " ~ batch.id ~ " was taken: " ~ (changed | unique | join(", "))
                ~ "; dbt run-operation heartbeat.refresh_reset --args '{model: " ~ load.name
                ~ "}' takes all batches anew from the archive") -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

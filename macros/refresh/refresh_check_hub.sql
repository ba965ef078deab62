{#- Refuses a hub that has no archive beside it: no refresh has made it there, and the first batch would replace all of it. -#}
{% macro refresh_check_hub(load) -%}
    {%- if load_relation(load.tables.hub) is not none and load_relation(load.tables.batches) is none -%}
        {%- do exceptions.raise_compiler_error(
            load.name ~ ": " ~ load.tables.hub ~ " is there without " ~ load.tables.batches ~ ", so no refresh has made it; drop "
            ~ "it or rename it, or, after a dbt clone, which copies the hub alone, copy all tables by heartbeat.refresh_clone") -%}
    {%- endif -%}
{%- endmacro %}

{#- Makes the ledger, or adds the columns that it lacks because an earlier version of this package has made it. -#}
{% macro refresh_make_ledger(ledger) -%}
    {%- set is_there, missing = load_relation(ledger) is not none, [] -%}
    {%- set there = heartbeat.refresh_names_of(ledger) if is_there else [] -%}
    {%- for name, type in heartbeat.refresh_ledger_columns().items() if name not in there -%}
        {%- do missing.append(name ~ " " ~ type) -%}
    {%- endfor -%}
    {%- if not is_there -%}
        {%- do run_query("create table if not exists " ~ ledger ~ " (" ~ missing | join(", ") ~ ") using delta") -%}
        {%- do adapter.cache_added(ledger) -%}
    {%- elif missing -%}
        {%- do run_query("alter table " ~ ledger ~ " add columns (" ~ missing | join(", ") ~ ")") -%}
    {%- endif -%}
{%- endmacro %}

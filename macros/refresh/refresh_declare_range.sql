{#- Gives a batch the range that the settings declare, so that a batch without rows says that there are none in it. The end
    is the first instant or number that the range does not hold. -#}
{% macro refresh_declare_range(load, fact) -%}
    {%- set settings = load.settings -%}
    {%- if settings.get('range_from') is none -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set read = [] -%}
    {%- for name in ['range_from', 'range_to'] -%}
        {%- set given = heartbeat.seed_literal(settings[name] | string, 'string') -%}
        {%- if settings.type == 'timestamp' -%}
            {%- do read.append("unix_micros(" ~ heartbeat.refresh_zoned(settings, "try_cast(" ~ given ~ " as timestamp)") ~ ")") -%}
        {%- else -%}
            {%- do read.append("try_cast(" ~ given ~ " as decimal(38, 0))") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set bounds = heartbeat.rows_of("select " ~ read | join(", "), 2)[0] -%}
    {%- if none in bounds or bounds[0] | int >= bounds[1] | int -%}
        {%- do exceptions.raise_compiler_error(
            load.name ~ ": meta.refresh declares the range from " ~ settings.range_from ~ " to before " ~ settings.range_to
            ~ ", but both must be " ~ ("instants" if settings.type == 'timestamp' else "whole numbers")
            ~ ", the first of them the lesser one") -%}
    {%- endif -%}
    {%- do fact.update(is_declared=true, observed=[fact.range_from, fact.range_to], range_from=bounds[0] | int,
        range_to=bounds[1] | int - 1, fingerprint=(fact.fingerprint or 0) ~ " in " ~ bounds | join(" ")) -%}
{%- endmacro %}

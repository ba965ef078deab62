{#- A condition on hub rows with literal bounds: within the range of a batch, both ends included. -#}
{% macro refresh_in_range(settings, batch) -%}
    {%- set bounds = [] -%}
    {%- for bound in [batch.range_from, batch.range_to] -%}
        {%- if settings.type == 'timestamp' -%}
            {%- set instant = modules.datetime.datetime(1970, 1, 1) + modules.datetime.timedelta(microseconds=bound | int) -%}
            {%- do bounds.append("timestamp'" ~ instant.isoformat(' ') ~ "+00:00'") -%}
        {%- else -%}
            {%- do bounds.append("cast(" ~ bound ~ " as decimal(38, 0))") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set column = 's_timestamp' if settings.type == 'timestamp' else 's_sequence' -%}
    {%- do return(column ~ " >= " ~ bounds[0] ~ " and " ~ column ~ " <= " ~ bounds[1]) -%}
{%- endmacro %}

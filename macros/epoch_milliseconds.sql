{#- An instant as a number of milliseconds since the epoch, rounded up; nothing for none. -#}
{% macro epoch_milliseconds(value, name) -%}
    {%- if value is not none -%}
        {%- set text = value | string | trim -%}
        {%- set is_text = value is string -%}
        {%- if modules.re.fullmatch('(?![0-9]{8}$)[+-]?[0-9]+', text) -%}
            {{ text | int }}
        {%- elif is_text and not modules.re.fullmatch('[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?', text) -%}
            {{ exceptions.raise_compiler_error(name ~ " '" ~ value ~ "' is no instant; write for example 2026-03-01T08:00Z, or milliseconds since the epoch") }}
        {%- else -%}
            {%- set utc = modules.pytz.utc -%}
            {%- set read = modules.datetime.datetime.fromisoformat(text) if is_text else value -%}
            {%- set at = read if read.tzinfo else read.replace(tzinfo=utc) -%}
            {%- set since = at - modules.datetime.datetime(1970, 1, 1, tzinfo=utc) -%}
            {{ since.days * 86400000 + since.seconds * 1000 + (since.microseconds + 999) // 1000 }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- An instant as the clock of the time zone shows it that the settings name, as SQL. -#}
{% macro refresh_zoned(settings, read) -%}
    {%- if settings.time_zone -%}
        cast(convert_timezone('{{ settings.time_zone }}', current_timezone(), cast({{ read }} as timestamp_ntz)) as timestamp)
    {%- else -%}
        {{ read }}
    {%- endif -%}
{%- endmacro %}

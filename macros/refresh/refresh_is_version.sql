{#- Whether a row opens a version in the history, as SQL. Once rows of a key came late and are to have their place, it is
    the order of time that tells: a row opens a version when it says something else than the one before it. -#}
{% macro refresh_is_version(settings, in_order) -%}
    {%- set by_receipt = "array_contains(folded.state.versions, received.s_input_id)" -%}
    {%- if settings.late_arriving == 'history' -%}
        {%- set said = "struct(received.s_deleted_flag, if(received.s_deleted_flag, null, received.s_hash))" -%}
        if(folded.state.is_late, not lag({{ said }}) over ({{ in_order }}) <=> {{ said }}, {{ by_receipt }})
    {%- else -%}
        {{ by_receipt }}
    {%- endif -%}
{%- endmacro %}

{#- Whether batches that are pending together may be brought in together. Not where what is done with one follows from the hub
    as the one before it left it: a custom delete, a complete extract, what a full batch changes, a closed period, rows that
    are put into the history late or kept when their key is deleted, and a key whose newer row is forgotten when it says what
    is known. -#}
{% macro refresh_may_join(settings) -%}
    {%- if settings.type == 'key' -%}
        {%- set is_kept = settings.unchanged_newer == 'touch' if settings.updated_at else not settings.extracted_at -%}
        {%- do return(is_kept and settings.late_arriving == 'ignore' and not settings['deletes.complete']
            and settings['deletes.mode'] != 'soft') -%}
    {%- endif -%}
    {%- do return(settings.type != 'custom' and not settings.immutable_where and not settings.diff_key) -%}
{%- endmacro %}

{#- Ends an operation that would work out hub or history from rows which the archive no longer has. -#}
{% macro refresh_need_archive(load, batches, what) -%}
    {%- set missing = batches | selectattr('is_vacuumed') | map(attribute='id') | list -%}
    {%- if missing -%}
        {%- do exceptions.raise_compiler_error(
            "refresh: " ~ what ~ " of " ~ load.name ~ " needs rows of batches " ~ missing | join(", ")
            ~ ", which refresh_vacuum has removed from the archive") -%}
    {%- endif -%}
{%- endmacro %}

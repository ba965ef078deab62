{#- Ends an operation that would work out hub or history from rows which the archive no longer has. -#}
{% macro refresh_need_archive(load, batches, what) -%}
    {%- set missing = batches | selectattr('is_vacuumed') | map(attribute='id') | list -%}
    {%- if missing -%}
        {%- do exceptions.raise_compiler_error(
            "refresh: " ~ what ~ " of " ~ load.name ~ " needs rows of batches " ~ missing | join(", ")
            ~ ", which are no longer in the archive, as refresh_vacuum or archive_days has it"
            ~ ("; to begin anew with what the model's query gives, drop its tables" if what == "a reset" else "")) -%}
    {%- endif -%}
{%- endmacro %}

{#- The rank of a row within its key, the latest first, as document 004 gives it. -#}
{% macro row_number(keys='id', sorting='p_extracted_at desc') -%}
    row_number() over (
        partition by {{ keys if keys is string else keys | join(", ") }}
        order by {{ sorting if sorting is string else sorting | join(", ") }}
    )
{%- endmacro %}

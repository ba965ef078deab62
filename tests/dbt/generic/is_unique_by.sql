{#- The grain of a model: no two rows agree in all key columns, and no key column is null unless it
    may be. One test for both, because each test of a deep view plans the whole view again. -#}
{% test is_unique_by(model, columns, may_be_null=false) %}

select
    {{ columns | join(",\n    ") }},
    count(*) as row_count
from {{ model }}
group by
    {{ columns | join(",\n    ") }}
having
    count(*) > 1
{%- if not may_be_null %}
    {%- for column in columns %}
    or {{ column }} is null
    {%- endfor %}
    {%- endif %}

{% endtest %}

{#- The grain of a model whose key has several columns: no two rows agree in all of them. -#}
{% test is_unique_by(model, columns) %}

select
    {{ columns | join(",\n    ") }},
    count(*) as row_count
from {{ model }}
group by
    {{ columns | join(",\n    ") }}
having count(*) > 1

{% endtest %}

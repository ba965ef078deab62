{#- The names of the columns of a table, in lower case. -#}
{% macro refresh_names_of(relation) -%}
    {%- do return(heartbeat.rows_of("describe query select * from " ~ relation, 2) | map('first') | map('lower') | list) -%}
{%- endmacro %}

{#- The names of all columns of a table, in its order. -#}
{% macro refresh_all_names(relation) -%}
    {%- do return(heartbeat.rows_of("describe query select * from " ~ relation) | map('first') | list) -%}
{%- endmacro %}

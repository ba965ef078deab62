{#- Whether no batch before this one counts, so that hub and history have nothing to hold it against. -#}
{% macro refresh_is_first(load, batch) -%}
    {%- do return(not load.batches | selectattr('state', 'in', ['COMPLETE', 'STAGED', 'UNLOADING'])
        | selectattr('id', 'lt', batch.id) | list) -%}
{%- endmacro %}

{#- One batch of a load by its number, which has to be in one of some states. -#}
{% macro refresh_batch_of(load, input_id, states) -%}
    {%- for batch in load.batches if batch.id == input_id | int -%}
        {%- if batch.state not in states -%}
            {%- do exceptions.raise_compiler_error(
                "refresh: batch " ~ input_id ~ " of " ~ load.name ~ " is " ~ batch.state ~ ", but must be "
                ~ states | join(" or ")) -%}
        {%- endif -%}
        {%- do return(batch) -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error(
        "refresh: " ~ load.name ~ " has no batch " ~ input_id ~ "; it has "
        ~ (load.batches | map(attribute='id') | join(", ") or "none")) -%}
{%- endmacro %}

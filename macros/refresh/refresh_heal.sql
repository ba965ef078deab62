{#- Finishes the batches that an earlier run has staged and not completed, in the order of their receipt, after those
    that an operation has begun to unload. -#}
{% macro refresh_heal(load) -%}
    {%- for batch in load.batches if batch.state == 'UNLOADING' -%}
        {%- do heartbeat.refresh_take_out(load, batch) -%}
    {%- endfor -%}
    {%- for batch in load.batches if batch.state == 'STAGED' -%}
        {%- do log(load.name ~ ": finishing batch " ~ batch.id ~ ", which a run before has left", info=true) -%}
        {%- do heartbeat.refresh_finish(load, [batch], true) -%}
    {%- endfor -%}
{%- endmacro %}

{#- Refuses a model whose query reads on from a watermark that another run has moved since: its rows would come twice. -#}
{% macro refresh_check_read_on(load, query) -%}
    {%- set read = modules.re.findall("batch log at step ([0-9]+)", query) | map('int') | list -%}
    {%- if read and read | min < load.step -%}
        {%- do exceptions.raise_compiler_error(
            load.name ~ ": another run has written to " ~ load.tables.ledger ~ " since refresh_watermark read it for this run: run "
            ~ "the model again") -%}
    {%- endif -%}
{%- endmacro %}

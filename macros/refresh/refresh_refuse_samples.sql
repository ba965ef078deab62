{#- Ends a run over a part of the rows: it would take what is missing for deleted, and the part for a batch. -#}
{% macro refresh_refuse_samples(node) -%}
    {%- if flags.EMPTY or flags.SAMPLE -%}
        {%- do exceptions.raise_compiler_error(
            node.name ~ ": a refresh takes what it is given for all of a batch, so it does not run with "
            ~ ("--empty" if flags.EMPTY else "--sample") ~ ": leave the model out with --exclude " ~ node.name) -%}
    {%- endif -%}
{%- endmacro %}

{#- What a run did, in a line: how many batches it took, with how many rows of which code. -#}
{% macro refresh_summary(batches) -%}
    {%- set told = [] -%}
    {%- for batch in batches -%}
        {%- set counts = [] -%}
        {%- for code, count in batch.get('code_counts', {}).items() -%}
            {%- do counts.append(code ~ " " ~ count) -%}
        {%- endfor -%}
        {%- do told.append(
            "batch " ~ batch.id ~ " " ~ batch.state ~ ", " ~ batch.record_count ~ " rows"
            ~ (": " ~ counts | join(", ") if counts else "")) -%}
    {%- endfor -%}
    {%- do return(told | join("; ") or "nothing new") -%}
{%- endmacro %}

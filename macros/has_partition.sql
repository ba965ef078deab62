{#- True for an event that names this partition, itself or in its tag partitions. Values are compared as
    text, without what JSON puts around it: "5" and 5 are alike. -#}
{% macro has_partition(event, partition) -%}
    {%- set levels = [partition] if partition is string else partition -%}
    {%- if not levels -%}
        {{ exceptions.raise_compiler_error("partition is empty; give a list with one value per level") }}
    {%- endif -%}
    {%- set wanted -%}
        array(
        {%- for level in levels -%}
            {%- set is_json = level is string and level[:1] == '"' -%}
            {%- set text = level if level is string or level is number and level is not boolean else tojson(level) -%}
            {{ seed_literal(fromjson(text, text) if is_json else text, 'string') }}
            {{- ", " if not loop.last -}}
        {%- endfor -%}
        )
    {%- endset -%}
    coalesce(
        transform(
            {{ event }}.partition,
            level -> if(
                level like '"%',
                coalesce(get_json_object(concat('[', level, ']'), '$[0]'), level),
                level
            )
        ) = {{ wanted }},
        exists(
            from_json(try_element_at({{ event }}.tags, 'partitions'), 'array<string>'),
            named -> transform(
                if(named like '[%', from_json(named, 'array<string>'), array(named)),
                level -> coalesce(level, 'null')
            ) = {{ wanted }}
        )
    )
{%- endmacro %}

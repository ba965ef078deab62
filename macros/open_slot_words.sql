{#- What the oldest open slot of a trigger waits for, in words: two halves of a blocker, or null. -#}
{% macro open_slot_words(position) -%}
    {%- set missing -%}
        coalesce(
            nullif(
                array_join(
                    from_json(
                        get_json_object({{ position }}, '$.missing[0]'), 'array<string>'
                    ),
                    ' and '
                ),
                ''
            ),
            'the run of the slot before'
        )
    {%- endset -%}
    {%- set slot = "get_json_object(" ~ position ~ ", '$.waiting[0]')" -%}
    if(
        {{ slot }} is null,
        null,
        named_struct(
            'reason', concat_ws(' ', 'waits in its slot', {{ slot }}, 'for', {{ missing }}),
            'waits_for', concat_ws(
                ' until ',
                {{ missing }},
                nullif(get_json_object({{ position }}, '$.expires[0]'), 'null')
            )
        )
    )
{%- endmacro %}

{#- What became of a trigger's slots that will never be satisfied, in one sentence; NULL if there are none. -#}
{% macro missed_slot_words(trigger) -%}
    nullif(
        concat_ws(
            '; ',
            {{ trigger }}.expired,
            if(
                {{ trigger }}.skipped_count > 0,
                concat(
                    {{ trigger }}.skipped_count,
                    ' missed ',
                    if({{ trigger }}.skipped_count = 1, 'slot was', 'slots were'),
                    ' left out; the newest that was due is ',
                    date_format({{ trigger }}.opened_through, "yyyy-MM-dd'T'HH:mm:ss'Z'")
                ),
                null
            )
        ),
        ''
    )
{%- endmacro %}

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

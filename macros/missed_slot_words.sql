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

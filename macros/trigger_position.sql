{#- Where a look at a trigger ends, as JSON: what the next look goes on from, and by which it sees at a glance that
    it need not (int_trigger_positions reads it). -#}
{% macro trigger_position(trigger) -%}
    to_json(
        named_struct(
            'opened_through', {{ trigger }}.opened_through,
            'waiting',
            coalesce(transform({{ trigger }}.waiting, each -> each.slot), array()),
            'missing', transform({{ trigger }}.waiting, each -> each.missing),
            'expires', transform({{ trigger }}.waiting, each -> each.expires_at),
            'looked_through', {{ trigger }}.looked_through,
            'next_due_at', {{ trigger }}.next_due_at,
            'pace_key', {{ trigger }}.pace_key,
            'is_ready', nullif(
                exists({{ trigger }}.waiting, each -> cardinality(each.missing) = 0), false
            )
        ),
        map('timestampFormat', "yyyy-MM-dd'T'HH:mm:ss'Z'")
    )
{%- endmacro %}

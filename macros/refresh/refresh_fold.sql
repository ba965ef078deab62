{#- What is known of a key after all of its rows in the order of their receipt, and which of them made a version, as an
    aggregate. -#}
{% macro refresh_fold(settings) -%}
    {%- set makes_version = "code in ('N', 'C', 'D')" -%}
    {%- if not settings['deletes.complete'] -%}
        {#- The delete of a key that nobody knew; that a complete extract lacks such a key says nothing. -#}
        {%- set makes_version = makes_version ~ " or code = 'U' and known.s_update_timestamp is null" -%}
    {%- endif -%}
    {%- set touches = "code = 'S'" if settings.unchanged_newer == 'touch' else "false" -%}
    aggregate(
        array_sort(collect_list(struct(
            s_input_id, s_update_timestamp, s_hash, s_deleted_flag, false as s_is_rejected, 1 as s_rank
        ))),
        named_struct(
            's_update_timestamp', cast(null as timestamp), 's_hash', cast(null as bigint),
            's_deleted_flag', cast(null as boolean), 's_seen_input_id', cast(null as bigint),
            'versions', cast(array() as array<bigint>), 'is_late', false, 'code', cast(null as string)
        ),
        (known, ranked) -> transform(array({{ heartbeat.refresh_code(settings) }}), code -> case
            when {{ makes_version }} then named_struct(
                's_update_timestamp', ranked.s_update_timestamp, 's_hash', ranked.s_hash,
                's_deleted_flag', ranked.s_deleted_flag, 's_seen_input_id', ranked.s_input_id,
                'versions', concat(known.versions, array(ranked.s_input_id)), 'is_late', known.is_late,
                'code', code
            )
            when {{ touches }} then named_struct(
                's_update_timestamp', ranked.s_update_timestamp, 's_hash', known.s_hash,
                's_deleted_flag', known.s_deleted_flag, 's_seen_input_id', ranked.s_input_id,
                'versions', known.versions, 'is_late', known.is_late, 'code', code
            )
            when code = 'O' then named_struct(
                's_update_timestamp', known.s_update_timestamp, 's_hash', known.s_hash,
                's_deleted_flag', known.s_deleted_flag, 's_seen_input_id', known.s_seen_input_id,
                'versions', known.versions, 'is_late', true, 'code', known.code
            )
            else known
        end)[0]
    )
{%- endmacro %}

{#- The archived rows of batches that say something to the history, as a query, with what each is (`s_kind`): a `version`; a
    `delete` of a key that nobody may have known, or surely nobody where rows after it count on that; a `touch` of a delete. -#}
{% macro refresh_rows_of_history(load, batches) -%}
    {%- set of_batches = "given." ~ heartbeat.refresh_of_batches(batches) -%}
    select given.*, if(given.s_record_status_code = 'S', 'touch', 'version') as s_kind
    from {{ load.tables.batches }} as given
    where
        {{ of_batches }}
        and (
            given.s_record_status_code in ('N', 'C', 'D')
            {%- if load.settings.unchanged_newer == 'touch' %}
            or given.s_record_status_code = 'S' and given.s_deleted_flag
            {%- endif %}
        )
    {%- if load.settings['deletes.when'] %}
    union all
    select given.*, 'delete' as s_kind
    from {{ load.tables.batches }} as given
    {%- if batches | length > 1 %}
    left anti join {{ load.tables.history }} as history
        on {{ heartbeat.refresh_same_key(load.settings, 'given', 'history') }} and history.s_effective_to is null
    {%- endif %}
    where {{ of_batches }} and given.s_record_status_code = 'U' and given.s_deleted_flag
    {%- endif %}
{%- endmacro %}

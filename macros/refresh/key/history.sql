{#- Opens and closes versions in the history of a key refresh. -#}
{% macro _refresh_apply_key_history(run, batches, is_redo) -%}
    {%- set history = run.tables.history -%}
    {%- set of_batches = "from " ~ history ~ " where " ~ heartbeat._refresh_in_batches(batches) ~ " limit 1" -%}
    {%- if is_redo and heartbeat._query_rows("select 1 " ~ of_batches) -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set columns, inserted = [], [] -%}
    {%- for column in heartbeat._refresh_table_columns(run, history) -%}
        {%- do columns.append(column.quoted) -%}
        {%- do inserted.append("change." ~ column.quoted) -%}
    {%- endfor -%}
    {%- set query -%}
        merge into {{ history }} as this
        using (
            {{ heartbeat._refresh_history_steps(run, batches) }}
        ) as change
        on {{ heartbeat._refresh_same_key(run.settings, 'this', 'change') }}
            and {{ heartbeat._refresh_in_bounds(run, batches, 'this') }}
            and this.s_effective_to is null and change.s_step <> 'open'
        when matched and change.s_step = 'close'
            then update set
                s_effective_to = change.s_effective_to,
                s_update_timestamp = greatest(this.s_update_timestamp, change.s_touched_at)
        when not matched and change.s_step in ('open', 'keep')
            then insert ({{ columns | join(", ") }}) values ({{ inserted | join(", ") }})
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

{#- The steps by which batches change the history of their keys, as a query: the open version is closed, or touched by
    a repeated delete (`close`), and the following ones are opened (`open`, or `keep` for the delete of a key that may
    be unknown). -#}
{% macro _refresh_history_steps(run, batches) -%}
    {%- set by_key = "partition by " ~ heartbeat._refresh_column_list(run.settings.key) -%}
    with placed as (
        select
            received.*,
            row_number() over ({{ by_key }} order by s_input_id) as s_place,
            count_if(s_kind = 'version') over ({{ by_key }} order by s_input_id) as s_version,
            min(if(s_kind = 'version', s_update_timestamp, null)) over ({{ by_key }}) as s_closed_at,
            min(if(s_kind = 'version', s_update_timestamp, null)) over (
                {{ by_key }} order by s_input_id rows between 1 following and unbounded following
            ) as s_next_at
        from ({{ heartbeat._refresh_history_rows(run, batches) }}) as received
    ),

    touched as (
        select
            placed.*,
            max(if(s_kind = 'touch', s_update_timestamp, null)) over ({{ by_key }}, s_version) as s_touched_at
        from placed
    )

    select
        touched.* except (s_update_timestamp, s_touched_at),
        greatest(s_update_timestamp, s_touched_at) as s_update_timestamp,
        if(s_version = 0, s_touched_at, null) as s_touched_at,
        s_update_timestamp as s_effective_from,
        if(s_step = 'close', s_closed_at, s_next_at) as s_effective_to,
        s_step
    from touched
    lateral view explode(array_compact(array(
        case when s_kind = 'version' then 'open' when s_kind = 'delete' and s_place = 1 then 'keep' end,
        if(s_place = 1 and coalesce(s_closed_at, if(s_version = 0, s_touched_at, null)) is not null, 'close', null)
    ))) as s_step
{%- endmacro %}

{#- The archived rows of batches that change the history, as a query, with the kind of each (`s_kind`): a `version`; a
    `delete` of a key that may be unknown, or surely is where rows after it depend on that; a `touch` of a delete. -#}
{% macro _refresh_history_rows(run, batches) -%}
    {%- set of_batches = "given." ~ heartbeat._refresh_in_batches(batches) -%}
    select given.*, if(given.s_record_status_code = 'S', 'touch', 'version') as s_kind
    from {{ run.tables.batches }} as given
    where
        {{ of_batches }}
        and (
            given.s_record_status_code in ('N', 'C', 'D')
            {%- if run.settings.unchanged_newer == 'touch' %}
            or given.s_record_status_code = 'S' and given.s_deleted_flag
            {%- endif %}
        )
    {%- if run.settings['deletes.when'] %}
    union all
    select given.*, 'delete' as s_kind
    from {{ run.tables.batches }} as given
    {%- if batches | length > 1 %}
    left anti join {{ run.tables.history }} as history
        on {{ heartbeat._refresh_same_key(run.settings, 'given', 'history') }} and history.s_effective_to is null
    {%- endif %}
    where {{ of_batches }} and given.s_record_status_code = 'U' and given.s_deleted_flag
    {%- endif %}
{%- endmacro %}

{#- Inserts late rows of a batch into the history, if there are any. -#}
{% macro _refresh_apply_late_rows(run, batch) -%}
    {%- set late = heartbeat._refresh_late_keys(run, batch) -%}
    {%- if heartbeat._query_rows("select 1 from (" ~ late ~ ") limit 1") -%}
        {%- set live = run.batches | selectattr('state', 'equalto', 'COMPLETE') | rejectattr('id', 'equalto', batch.id) | list -%}
        {%- do heartbeat._refresh_rebuild_keys(run, late, live + [batch], ['history']) -%}
    {%- endif -%}
{%- endmacro %}

{#- The keys whose history a batch changes before its end, as a query: it has a row that is older than the known
    state, or one that dates the known state earlier. -#}
{% macro _refresh_late_keys(run, batch) -%}
    {%- set settings = run.settings -%}
    select {{ heartbeat._refresh_column_list(settings.key, 'given') }}
    from {{ run.tables.batches }} as given
    inner join {{ run.tables.history }} as history
        on {{ heartbeat._refresh_same_key(settings, 'given', 'history') }}
    where
        given.s_input_id = {{ batch.id }}
        and given.s_record_status_code in ('O', 'U')
        and given.s_update_timestamp < history.s_effective_from
        and history.s_effective_to is null
    union
    select {{ heartbeat._refresh_column_list(settings.key) }}
    from {{ run.tables.batches }}
    where s_input_id = {{ batch.id }} and s_record_status_code = 'O'
{%- endmacro %}

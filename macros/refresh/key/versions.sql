{#- Recomputes target table and history of some keys from batches in the batch archive, and replaces them, one commit
    each. -#}
{% macro _refresh_rebuild_keys(run, affected, live, names) -%}
    {%- do heartbeat._refresh_create_staging(run, heartbeat._refresh_versions(run, affected, live), 'versions') -%}
    {%- if 'hub' in names -%}
        {%- set values = {'s_update_timestamp': 'change.s_touched_at', 's_record_status_code': 'change.s_hub_code'} -%}
        {%- if run.settings['deletes.mode'] == 'soft' -%}
            {%- for column in run.columns if column.name | lower not in run.settings.key | map('lower') -%}
                {%- do values.update({column.name: "if(change.s_deleted_flag, change.s_kept." ~ column.quoted
                    ~ ", change." ~ column.quoted ~ ")"}) -%}
            {%- endfor -%}
            {%- set is_current = "given.s_is_last and (not given.s_deleted_flag or given.s_kept is not null)" -%}
        {%- else -%}
            {%- set is_current = "given.s_is_last and not given.s_deleted_flag" -%}
        {%- endif -%}
        {%- do heartbeat._refresh_replace_keys(run, run.tables.hub, affected, is_current, values) -%}
    {%- endif -%}
    {%- if 'history' in names -%}
        {#- Last, as the history may be the only table that has the affected keys. -#}
        {%- do heartbeat._refresh_replace_keys(run, run.tables.history, affected, 'given.s_is_version', {}) -%}
    {%- endif -%}
    {%- do run_query("drop table if exists " ~ run.tables.versions) -%}
{%- endmacro %}

{#- All versions of some keys, recomputed from the archived batches in the order of receipt by the rule that gives a
    row its code, as a query: `s_is_version` those of the history, `s_is_last` those of the target table. -#}
{% macro _refresh_versions(run, affected, live) -%}
    {%- set settings, keys = run.settings, heartbeat._refresh_column_list(run.settings.key, 'received') -%}
    {%- set in_order = "partition by " ~ keys ~ " order by received.s_update_timestamp, received.s_input_id" -%}
    with affected as ({{ affected }}),

    received as ({{ heartbeat._refresh_received_rows(run, live) }}),

    folded as (
        select {{ heartbeat._refresh_column_list(settings.key) }}, {{ heartbeat._refresh_key_state(settings) }} as state
        from received
        group by {{ heartbeat._refresh_column_list(settings.key) }}
    ),

    marked as (
        select
            received.*, folded.state.s_seen_input_id, folded.state.s_update_timestamp as s_touched_at,
            folded.state.code as s_hub_code,
            received.s_input_id = element_at(folded.state.versions, -1) as s_is_last,
            {{ heartbeat._refresh_is_version(settings, in_order) }} as s_is_version,
            {{ heartbeat._refresh_kept_values(run) }} as s_kept
        from received
        inner join folded
            on {{ heartbeat._refresh_same_key(settings, 'received', 'folded') }}
    ),

    ended as (
        select
            received.*,
            min(if(s_is_version, s_update_timestamp, null)) over (
                {{ in_order }} rows between 1 following and unbounded following
            ) as s_effective_to
        from marked as received
    )

    select * except (s_update_timestamp), s_update_timestamp as s_effective_from,
        if(s_effective_to is null and s_deleted_flag, s_touched_at, s_update_timestamp) as s_update_timestamp
    from ended
    where s_is_version or s_is_last
{%- endmacro %}

{#- The archived rows of some keys, as a query. A complete extract without a key counts as a delete of it: which keys
    it lacks follows from its rows, as what was deleted at its receipt depends on batches that may be gone. -#}
{% macro _refresh_received_rows(run, live) -%}
    {%- set settings, batches = run.settings, run.tables.batches -%}
    {%- set same = heartbeat._refresh_same_key(settings, 'batches', 'affected') -%}
    select batches.*
    from {{ batches }} as batches
    left semi join affected
        on {{ same }}
    where
        batches.s_input_id in ({{ live | map(attribute='id') | join(", ") or "0" }})
        and batches.s_record_status_code not in ('X', 'R')
        and batches.s_row_num is not null
    {%- if settings['deletes.complete'] and live %}
    union all
    select {{ heartbeat._refresh_select_items(run, batches,
        settings.key + ['s_input_id', 's_update_timestamp', 's_deleted_flag', 's_record_status_code'], 'absent') }}
    from (
        select
            {{ heartbeat._refresh_column_list(settings.key, 'affected') }},
            cast(taken.id as bigint) as s_input_id,
            taken.taken_at as s_update_timestamp,
            true as s_deleted_flag,
            'D' as s_record_status_code
        from affected
        cross join values
            {%- for batch in live %}
            ({{ batch.id }}, {{ heartbeat._refresh_extract_time(settings, batch) }}){{ "," if not loop.last }}
            {%- endfor %} as taken (id, taken_at)
        left anti join {{ batches }} as batches
            on batches.s_input_id = taken.id and batches.s_row_num is not null and {{ same }}
    ) as absent
    {%- endif %}
{%- endmacro %}

{#- The state of a key after all of its rows in the order of receipt, and which of them made a version, as an
    aggregate. -#}
{% macro _refresh_key_state(settings) -%}
    {%- set makes_version = "code in ('N', 'C', 'D')" -%}
    {%- if not settings['deletes.complete'] -%}
        {#- The delete of an unknown key; in a complete extract, its absence means nothing. -#}
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
        (known, ranked) -> transform(array({{ heartbeat._refresh_code(settings) }}), code -> case
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

{#- Whether a row opens a version in the history, as SQL. If late rows of a key are placed by time, a row opens a
    version when it differs from the one before it in time. -#}
{% macro _refresh_is_version(settings, in_order) -%}
    {%- set by_receipt = "array_contains(folded.state.versions, received.s_input_id)" -%}
    {%- if settings.late_arriving == 'history' -%}
        {%- set said = "struct(received.s_deleted_flag, if(received.s_deleted_flag, null, received.s_hash))" -%}
        if(folded.state.is_late, not lag({{ said }}) over ({{ in_order }}) <=> {{ said }}, {{ by_receipt }})
    {%- else -%}
        {{ by_receipt }}
    {%- endif -%}
{%- endmacro %}

{#- The last values of a key before it was deleted, as SQL: the target table keeps those of keys that are only flagged
    as deleted. -#}
{% macro _refresh_kept_values(run) -%}
    {%- if run.settings['deletes.mode'] == 'soft' -%}
        last_value(
            if(
                not received.s_deleted_flag and array_contains(folded.state.versions, received.s_input_id),
                struct({{ heartbeat._refresh_column_list(run.columns | map(attribute='name'), 'received') }}),
                null
            ),
            true
        ) over (
            partition by {{ heartbeat._refresh_column_list(run.settings.key, 'received') }}
            order by received.s_input_id rows between unbounded preceding and current row
        )
    {%- else -%}
        cast(null as boolean)
    {%- endif -%}
{%- endmacro %}

{#- Replaces all rows of some keys by their versions, in one commit. `values` overrides the column of the same name. -#}
{% macro _refresh_replace_keys(run, relation, affected, condition, values) -%}
    {%- set columns, inserted = [], [] -%}
    {%- for column in heartbeat._refresh_table_columns(run, relation) -%}
        {%- do columns.append(column.quoted) -%}
        {%- do inserted.append(values.get(column.name, "change." ~ column.quoted)) -%}
    {%- endfor -%}
    {%- set versions = run.tables.versions -%}
    {%- set query -%}
        merge into {{ relation }} as this
        using (
            select given.*, false as s_is_old
            from {{ versions }} as given
            where {{ condition }}
            union all
            select {{ heartbeat._refresh_select_items(run, versions, run.settings.key, 'affected') }}, true as s_is_old
            from ({{ affected }}) as affected
        ) as change
        on change.s_is_old and {{ heartbeat._refresh_same_key(run.settings, 'this', 'change') }}
        when matched then delete
        when not matched and not change.s_is_old
            then insert ({{ columns | join(", ") }}) values ({{ inserted | join(", ") }})
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

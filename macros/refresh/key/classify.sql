{#- The staged rows of batches, each with its code, as a query: compared with the last received row of its key, which
    is in the target table, in the history if the key is deleted, or in a batch before it. Unneeded parts are left
    out: a first batch is compared with nothing, and one with unique keys discards no row. -#}
{% macro _refresh_classified_rows(run, batches) -%}
    {%- set settings, is_first = run.settings, heartbeat._refresh_is_first(run, batches[0]) -%}
    with staged as (
        {{ heartbeat._refresh_staged_rows(run, batches) }}
        {%- if settings['deletes.complete'] and not is_first %}
        union all
        {{ heartbeat._refresh_absent_rows(run, batches[0]) }}
        {%- endif %}
    ),

    ranked as (
        select staged.*, {{ "1" if batches[0].is_unique else heartbeat._refresh_rank(run) }} as s_rank from staged
    )
    {%- if not is_first %},

    wanted as (
        select {{ heartbeat._refresh_column_list(settings.key) }} from staged where not s_is_rejected
    ),

    known as (
        {{ heartbeat._refresh_known_keys(run, batches) }}
    ),

    compared as (
        select ranked.*, {{ heartbeat._refresh_previous_state(settings, batches) }} as s_known
        from ranked
        left outer join known
            on {{ heartbeat._refresh_same_key(settings, 'ranked', 'known') }}
    )
    {%- endif %}

    select
        ranked.* except (s_record_status_code {{- "" if is_first else ", s_known" }}),
        {{ heartbeat._refresh_code(settings, is_first, 'ranked.s_known') }} as s_record_status_code
    from {{ "ranked" if is_first else "compared as ranked" }}
{%- endmacro %}

{#- The rank of a row within its key in one batch, as SQL: the first of them counts. Rows of one instant are ordered
    by the values of all columns, so that the same rows give the same result in whatever order they are read; the row
    number orders only rows that are equal in everything. -#}
{% macro _refresh_rank(run) -%}
    row_number() over (
        partition by s_input_id, s_is_rejected, {{ heartbeat._refresh_column_list(run.settings.key) }}
        order by s_update_timestamp desc, s_deleted_flag desc,
        {%- for column in run.settings.tie_breaker %} {{ adapter.quote(column) }} desc, {%- endfor %}
        {%- for column in run.columns if column.name not in run.settings.key %}
            {{- " " ~ heartbeat._refresh_canonical(column.quoted, column.type) | trim }} desc, {%- endfor %} s_row_num desc
    )
{%- endmacro %}

{#- The status code of a row compared with the state of its key, as SQL. Newer means not older: of two rows of the
    same instant the one received later holds. -#}
{% macro _refresh_code(settings, is_first=false, known='known') -%}
    {%- set touches = settings.updated_at -%}
    case
        when ranked.s_is_rejected then 'R'
        when ranked.s_rank > 1 then 'X'
        when {{ "true" if is_first else known ~ ".s_update_timestamp is null" }} then if(ranked.s_deleted_flag, 'U', 'N')
        {%- if not is_first %}
        when ranked.s_deleted_flag and {{ known }}.s_deleted_flag
            or not ranked.s_deleted_flag and not {{ known }}.s_deleted_flag and ranked.s_hash = {{ known }}.s_hash
            then if(ranked.s_update_timestamp > {{ known }}.s_update_timestamp {{ "and false" if not touches }}, 'S', 'U')
        when ranked.s_update_timestamp < {{ known }}.s_update_timestamp then 'O'
        when ranked.s_deleted_flag then 'D'
        when {{ known }}.s_deleted_flag then 'N'
        else 'C'
        {%- endif %}
    end
{%- endmacro %}

{#- The state of the wanted keys, as a query: from few columns of the target table, and from the open versions in the
    history of deleted keys. -#}
{% macro _refresh_known_keys(run, batches) -%}
    {%- set settings = run.settings -%}
    {%- set keys = heartbeat._refresh_column_list(settings.key) -%}
    select {{ keys }}, s_hash, s_update_timestamp, false as s_deleted_flag
    from {{ run.tables.hub }} as hub
    left semi join wanted
        on {{ heartbeat._refresh_same_key(settings, 'hub', 'wanted') }}
    where {{ heartbeat._refresh_in_bounds(run, batches, 'hub') }}
    {%- if settings['deletes.mode'] == 'soft' %}
        and not hub.s_deleted_flag
    {%- endif %}
    {%- if settings['deletes.when'] %}
    union all
    select {{ keys }}, s_hash, s_update_timestamp, s_deleted_flag
    from {{ run.tables.history }} as history
    left semi join wanted
        on {{ heartbeat._refresh_same_key(settings, 'history', 'wanted') }}
    where history.s_deleted_flag and history.s_effective_to is null
        and {{ heartbeat._refresh_in_bounds(run, batches, 'history') }}
    {%- endif %}
{%- endmacro %}

{#- The state of a row's key before the row was received, as SQL: that of the tables, unless an earlier batch of the
    same run has one that is not older. -#}
{% macro _refresh_previous_state(settings, batches) -%}
    {%- set fields = "struct({0}.s_update_timestamp, {1} as s_input_id, {0}.s_hash, {0}.s_deleted_flag)" -%}
    {%- set in_tables = "if(known.s_update_timestamp is null, null, " ~ fields.format("known", "0l") ~ ")" -%}
    {%- if batches | length == 1 -%}
        {{ in_tables }}
    {%- else -%}
        greatest({{ in_tables }}, max(if(
            ranked.s_is_rejected or ranked.s_rank > 1, null, {{ fields.format("ranked", "ranked.s_input_id") }}
        )) over (
            partition by {{ heartbeat._refresh_column_list(settings.key, 'ranked') }}
            order by ranked.s_input_id range between unbounded preceding and 1 preceding
        ))
    {%- endif -%}
{%- endmacro %}

{#- A row for each key that a complete extract lacks, in the shape of the staged rows, as a query. It has no row
    number, since it was not received. -#}
{% macro _refresh_absent_rows(run, batch) -%}
    select
        {{ heartbeat._refresh_select_items(run, run.tables.staging, run.settings.key, 'absent') }},
        cast(null as bigint) as s_hash,
        {{ heartbeat._refresh_extract_time(run.settings, batch) }} as s_update_timestamp,
        true as s_deleted_flag,
        false as s_is_rejected,
        cast({{ batch.id }} as bigint) as s_input_id,
        cast(null as string) as s_record_status_code
    from ({{ heartbeat._refresh_absent_keys(run, batch) }}) as absent
{%- endmacro %}

{#- The live keys of the target table without a staged row in a complete extract, as a query. A row rejected for its
    date still shows that its key exists. -#}
{% macro _refresh_absent_keys(run, batch) -%}
    select {{ heartbeat._refresh_column_list(run.settings.key, 'hub') }}
    from {{ run.tables.hub }} as hub
    left anti join (
        select {{ heartbeat._refresh_column_list(run.settings.key) }}
        from {{ run.tables.staging }}
        where s_batch <=> {{ heartbeat._sql_literal(batch.batch, 'string') }}
    ) as present
        on {{ heartbeat._refresh_same_key(run.settings, 'hub', 'present') }}
    {%- if run.settings['deletes.mode'] == 'soft' %}
    where not hub.s_deleted_flag
    {%- endif %}
{%- endmacro %}

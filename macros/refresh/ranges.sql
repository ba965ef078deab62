{#- The value that ranges consist of, as a number: microseconds since 1970, or the sequence itself; NULL for other
    types. -#}
{% macro _refresh_range_value(settings) -%}
    {%- if settings.type == 'key' and (settings.updated_at or settings.extracted_at) -%}
        cast(unix_micros(s_update_timestamp) as decimal(38, 0))
    {%- elif settings.type == 'timestamp' or settings.extracted_at -%}
        cast(unix_micros(s_timestamp) as decimal(38, 0))
    {%- elif settings.type == 'sequence' -%}
        s_sequence
    {%- else -%}
        cast(null as decimal(38, 0))
    {%- endif -%}
{%- endmacro %}

{#- A condition on target rows with literal bounds: within the range of a batch, both ends included. -#}
{% macro _refresh_in_range(settings, batch) -%}
    {%- set bounds = [] -%}
    {%- for bound in [batch.range_from, batch.range_to] -%}
        {%- if settings.type == 'timestamp' -%}
            {%- set instant = modules.datetime.datetime(1970, 1, 1) + modules.datetime.timedelta(microseconds=bound | int) -%}
            {%- do bounds.append("timestamp'" ~ instant.isoformat(' ') ~ "+00:00'") -%}
        {%- else -%}
            {%- do bounds.append("cast(" ~ bound ~ " as decimal(38, 0))") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set column = 's_timestamp' if settings.type == 'timestamp' else 's_sequence' -%}
    {%- do return(column ~ " >= " ~ bounds[0] ~ " and " ~ column ~ " <= " ~ bounds[1]) -%}
{%- endmacro %}

{#- Gives a batch the range that the settings declare, so that a batch without rows empties it. The end is the first
    instant or number after the range. -#}
{% macro _refresh_declare_range(run, fact) -%}
    {%- set settings = run.settings -%}
    {%- if settings.get('range_from') is none -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set read = [] -%}
    {%- for name in ['range_from', 'range_to'] -%}
        {%- set given = heartbeat._sql_literal(settings[name] | string, 'string') -%}
        {%- if settings.type == 'timestamp' -%}
            {%- do read.append("unix_micros(" ~ heartbeat._refresh_zoned(settings, "try_cast(" ~ given ~ " as timestamp)") ~ ")") -%}
        {%- else -%}
            {%- do read.append("try_cast(" ~ given ~ " as decimal(38, 0))") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set bounds = heartbeat._query_rows("select " ~ read | join(", "), 2)[0] -%}
    {%- if none in bounds or bounds[0] | int >= bounds[1] | int -%}
        {%- do exceptions.raise_compiler_error(
            run.name ~ ": meta.refresh declares the range from " ~ settings.range_from ~ " to before " ~ settings.range_to
            ~ ", but both must be " ~ ("instants" if settings.type == 'timestamp' else "whole numbers")
            ~ ", the first of them the lesser one") -%}
    {%- endif -%}
    {%- do fact.update(is_declared=true, observed=[fact.range_from, fact.range_to], range_from=bounds[0] | int,
        range_to=bounds[1] | int - 1, fingerprint=(fact.fingerprint or 0) ~ " in " ~ bounds | join(" ")) -%}
{%- endmacro %}

{#- Gives a batch that is processed again its earlier range, which its rows alone may not show, unless the settings
    have changed how it is read. -#}
{% macro _refresh_keep_range(run, fact, batch) -%}
    {%- set before = fromjson(batch.settings) -%}
    {%- set changed = [] -%}
    {%- for name in ['type', 'column', 'format', 'time_zone'] if before.get(name) != run.settings.get(name) -%}
        {%- do changed.append(name) -%}
    {%- endfor -%}
    {%- if run.settings.column and batch.range_from is not none and not changed -%}
        {%- do fact.update(is_declared=true, range_from=batch.range_from | int, range_to=batch.range_to | int,
            fingerprint=batch.fingerprint) -%}
    {%- endif -%}
{%- endmacro %}

{#- The effective ranges of each batch, one row for each piece, as a query over `batches`, those of the batch log: the
    parts that no later batch covers, both ends included. -#}
{% macro _refresh_effective_batch_ranges() -%}
    with live as (
        select s_input_id, newest.range_from as starts, newest.range_to + 1 as ends
        from batches
        where newest.state = 'COMPLETE' and newest.range_from is not null
    ),

    pieces as (
        select edge as starts, lead(edge) over (order by edge) as ends
        from (select starts as edge from live union select ends from live)
    ),

    held as (
        select pieces.starts, pieces.ends, max(live.s_input_id) as s_input_id
        from pieces
        left outer join live
            on live.starts <= pieces.starts and live.ends > pieces.starts
        group by pieces.starts, pieces.ends
    ),

    marked as (
        select *, not lag(s_input_id) over (order by starts) <=> s_input_id as is_new from held
    ),

    islands as (
        select *, count_if(is_new) over (order by starts) as island from marked
    )

    select s_input_id, min(starts) as starts, max(ends) - 1 as ends
    from islands
    where s_input_id is not null
    group by s_input_id, island
{%- endmacro %}

{#- The effective ranges of each batch, with the number of target rows in each, as a query over `batches`. -#}
{% macro _refresh_effective_range_counts(run) -%}
    {%- set is_time = run.settings.type == 'timestamp' -%}
    {%- set value = "timestamp_micros(cast({} as bigint))" if is_time else "{}" -%}
    with held as (
        {{ heartbeat._refresh_effective_batch_ranges() }}
    ),

    placed as (
        select s_input_id, {{ "unix_micros(s_timestamp)" if is_time else "s_sequence" }} as place
        from {{ run.tables.hub }}
    ),

    counted as (
        select held.s_input_id, held.starts, held.ends, count(placed.place) as record_count
        from held
        left outer join placed
            on held.s_input_id = placed.s_input_id and placed.place between held.starts and held.ends
        group by held.s_input_id, held.starts, held.ends
    )

    select s_input_id, array_sort(collect_list(struct(
        {{ value.format("starts") }} as range_from, {{ value.format("ends") }} as range_to, record_count))) as ranges
    from counted
    group by s_input_id
{%- endmacro %}

{#- Restores the range of a batch to the batches that would have it without this one, in one commit: no later batch
    may cover the instant of an archived row. -#}
{% macro _refresh_restore_range(run, batch, live) -%}
    {%- set tables = run.tables -%}
    {%- set within = heartbeat._refresh_in_range(run.settings, batch) -%}
    {%- set covers = [] -%}
    {%- for other in live if other.range_from is not none and other.range_from | int <= batch.range_to | int
        and other.range_to | int >= batch.range_from | int -%}
        {%- do covers.append("(" ~ other.id ~ ", " ~ other.range_from ~ "bd, " ~ other.range_to ~ "bd)") -%}
    {%- endfor -%}
    {%- set given = heartbeat._refresh_table_columns(run, tables.batches) | map(attribute='name') | list -%}
    {%- set query -%}
        insert into {{ tables.hub }} replace where {{ within }}
        select {{ heartbeat._refresh_select_items(run, tables.hub, given, 'given') }}
        from {{ tables.batches }} as given
        {%- if covers %}
        where s_input_id in ({{ live | map(attribute='id') | join(", ") }})
            and s_record_status_code is null
            and {{ within }}
            and not exists (
                select 1 from values {{ covers | join(", ") }} as later (id, range_from, range_to)
                where later.id > given.s_input_id
                    and {{ heartbeat._refresh_range_value(run.settings) }} between later.range_from and later.range_to
            )
        {%- else %}
        where false
        {%- endif %}
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

{#- The part of the target table that a batch affects, as text. -#}
{% macro _refresh_affected_range(run, batch) -%}
    {%- if run.settings.type == 'key' -%}
        {%- set keys = heartbeat._refresh_keys_of_batch(run, batch) -%}
        {%- do return(heartbeat._query_rows("select count(*) from (" ~ keys ~ ")")[0][0] ~ " keys") -%}
    {%- elif run.settings.column and batch.range_from is not none -%}
        {%- do return("where " ~ heartbeat._refresh_in_range(run.settings, batch)) -%}
    {%- endif -%}
    {%- do return(batch.record_count ~ " rows") -%}
{%- endmacro %}

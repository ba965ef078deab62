{#- Creates the batch log, or adds the columns that it lacks because an earlier version of this package created it. In
    a workspace, a table with deletion vectors rejects only writers that change the same row, and two that append have
    none in common: without them, two writers that have read the same batch log conflict. -#}
{% macro _refresh_create_batch_log(ledger) -%}
    {%- set is_there, missing = load_relation(ledger) is not none, [] -%}
    {%- set there = heartbeat._refresh_column_names(ledger) if is_there else [] -%}
    {%- for name, type in heartbeat._refresh_batch_log_columns().items() if name not in there -%}
        {%- do missing.append(name ~ " " ~ type) -%}
    {%- endfor -%}
    {%- if not is_there -%}
        {%- do run_query("create table if not exists " ~ ledger ~ " (" ~ missing | join(", ")
            ~ ") using delta tblproperties ('delta.isolationLevel' = 'Serializable', 'delta.enableDeletionVectors' = 'false')") -%}
        {%- do adapter.cache_added(ledger) -%}
    {%- elif missing -%}
        {%- do run_query("alter table " ~ ledger ~ " add columns (" ~ missing | join(", ") ~ ")") -%}
    {%- endif -%}
{%- endmacro %}

{#- The columns of the batch log of a refresh model, with their types. A row is an event of one batch; the newest row
    of a batch, that of the greatest `step`, has its state. A new column goes to the end, where an existing batch log
    gets it. -#}
{% macro _refresh_batch_log_columns() -%}
    {%- do return({
        's_input_id': 'bigint',
        'state': 'string',
        'recorded_at': 'timestamp',
        'received_at': 'timestamp',
        'invocation_id': 'string',
        'intent_id': 'string',
        'batch': 'string',
        'settings': 'string',
        'fingerprint': 'string',
        'record_count': 'bigint',
        'code_counts': 'map<string, bigint>',
        'hub_code_counts': 'map<string, bigint>',
        'conflict_count': 'bigint',
        'range_from': 'decimal(38, 0)',
        'range_to': 'decimal(38, 0)',
        'message': 'string',
        'is_archived': 'boolean',
        'step': 'bigint',
        'watermark': 'string',
    }) -%}
{%- endmacro %}

{#- Appends the new state of batches to the batch log, in one commit, which takes the next step. If another run has
    taken that step since this one read the batch log, nothing is appended and this run ends: of two concurrent
    writers, Delta rejects one. -#}
{% macro _refresh_record_batches(run, batches, state, message=none) -%}
    {%- set rows = [] -%}
    {%- for batch in batches -%}
        {%- set counts, hub_counts = batch.get('code_counts'), batch.get('hub_code_counts') -%}
        {%- set values = {
            's_input_id': batch.id,
            'state': "'" ~ state ~ "'",
            'recorded_at': 'current_timestamp()',
            'received_at': "'" ~ batch.received_at ~ "'",
            'invocation_id': "'" ~ invocation_id ~ "'",
            'intent_id': heartbeat._sql_literal(env_var('HEARTBEAT_INTENT_ID', '') or none, 'string'),
            'batch': heartbeat._sql_literal(batch.batch, 'string'),
            'settings': heartbeat._sql_literal(tojson(run.settings, sort_keys=true), 'string'),
            'fingerprint': heartbeat._sql_literal(batch.fingerprint, 'string'),
            'record_count': batch.record_count,
            'code_counts': heartbeat._refresh_counts_map(counts) if counts else none,
            'hub_code_counts': heartbeat._refresh_counts_map(hub_counts) if hub_counts is not none and state != 'STAGED' else none,
            'conflict_count': batch.get('conflict_count'),
            'range_from': batch.range_from,
            'range_to': batch.range_to,
            'message': heartbeat._sql_literal(message, 'string'),
            'is_archived': (not batch.is_vacuumed) | string | lower,
            'step': run.step + 1,
            'watermark': heartbeat._sql_literal(batch.get('watermark'), 'string'),
        } -%}
        {%- set items = [] -%}
        {%- for name, type in heartbeat._refresh_batch_log_columns().items() -%}
            {%- do items.append("cast(" ~ ('null' if values[name] is none else values[name]) ~ " as " ~ type ~ ") as " ~ name) -%}
        {%- endfor -%}
        {%- do rows.append("select " ~ items | join(", ")) -%}
        {%- do batch.update(state=state) -%}
    {%- endfor -%}
    {%- set names = heartbeat._refresh_batch_log_columns().keys() | list -%}
    {#- A merge reads the batch log in its own transaction, an insert's subquery might not. -#}
    {%- set query -%}
        merge into {{ run.tables.ledger }} as ledger
        using ({{ rows | join(" union all ") }}) as given
        on ledger.step > {{ run.step }}
        when not matched then insert ({{ names | join(", ") }}) values (given.{{ names | join(", given.") }})
    {%- endset -%}
    {%- if heartbeat._query_rows(query, 4)[0][3] | int != rows | length -%}
        {%- do exceptions.raise_compiler_error(
            run.name ~ ": another run has written to " ~ run.tables.ledger ~ " since this run read it, so this run ends "
            ~ "without recording " ~ state ~ " of batch " ~ batches | map(attribute='id') | join(", ") ~ ": run the model again") -%}
    {%- endif -%}
    {%- do run.update(step=run.step + 1) -%}
{%- endmacro %}

{#- Counts by code as a map in SQL. -#}
{% macro _refresh_counts_map(counts) -%}
    {%- set items = [] -%}
    {%- for code, count in counts.items() -%}
        {%- do items.append("'" ~ code ~ "', " ~ count) -%}
    {%- endfor -%}
    {%- do return("map(" ~ items | join(", ") ~ ")") -%}
{%- endmacro %}

{#- The batches of a batch log in the order of receipt, each with its newest state. `there` are the columns of a batch
    log that an earlier version of this package may have created. -#}
{% macro _refresh_logged_batches(ledger, there=none) -%}
    {%- set there = heartbeat._refresh_batch_log_columns().keys() | list if there is none else there -%}
    {%- set read = ['state', 'batch', 'received_at', 'settings', 'fingerprint', 'record_count', 'range_from', 'range_to',
        'is_archived', 'step', 'watermark'] -%}
    {%- set batches = [] -%}
    {%- set query -%}
        select to_json(named_struct(
            'id', s_input_id,
            'received_micros', unix_micros(newest.received_at)
            {%- for name in read if name in there %}, '{{ name }}', cast(newest.{{ name }} as string){% endfor %}
        ), map('ignoreNullFields', 'false'))
        from (
            select
                s_input_id,
                max_by(struct({{ read | select('in', there) | join(", ") }}), {{ heartbeat._refresh_batch_log_order(there) }}) as newest
            from {{ ledger }}
            group by s_input_id
        )
    {%- endset -%}
    {%- for batch in heartbeat._json_rows(query) | sort(attribute='id') -%}
        {%- do batch.setdefault('watermark', none) -%}
        {%- do batch.update(is_vacuumed=(batch.is_archived == 'false'), step=(batch.get('step') or 0) | int) -%}
        {%- do batches.append(batch) -%}
    {%- endfor -%}
    {%- do return(batches) -%}
{%- endmacro %}

{#- The state of each batch by the batch log, as a query: its newest event, its rows by code, its conflicts, and the
    rows of the target table by code after it. A batch that left the target table unchanged did not count them: those
    of the event before hold. `there` are the columns of a batch log that an earlier version of this package may have
    created. -#}
{% macro _refresh_newest_logged(run, there=none) -%}
    {%- set there = heartbeat._refresh_batch_log_columns().keys() | list if there is none else there -%}
    {%- set in_order = heartbeat._refresh_batch_log_order(there) -%}
    select
        s_input_id,
        max_by(struct(ledger.*), {{ in_order }}) as newest,
        max_by(code_counts, {{ in_order }}) filter (where code_counts is not null) as code_counts,
        max_by(conflict_count, {{ in_order }}) filter (where conflict_count is not null) as conflict_count,
        max_by(hub_then, {{ in_order }}) filter (where state = 'COMPLETE') as hub_code_counts,
        max_by(recorded_at, {{ in_order }}) as recorded_at
    from (
        select *, last_value(hub_code_counts, true) over (
            order by {{ "coalesce(step, 0), " if 'step' in there }}recorded_at
        ) as hub_then
        from {{ run.tables.ledger }}
    ) as ledger
    group by s_input_id
{%- endmacro %}

{#- The order of the rows of one batch in the batch log, as SQL, given the columns that the batch log has. The step
    decides, which each commit increments: a clock does not, as each run has that of its own driver. Rows from before
    there were steps come first, in the order of a batch's life, and by their clock only among equals. -#}
{% macro _refresh_batch_log_order(there) -%}
    struct({{ "coalesce(step, 0)" if 'step' in there else "0" }},
        case state when 'STAGED' then 0 when 'UNLOADING' then 2 when 'UNLOADED' then 3 else 1 end, recorded_at)
{%- endmacro %}

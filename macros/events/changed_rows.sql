{#- The rows of a table that changed between the two ends of the run payload, as a subselect: the columns of the table
    and `_change_type`. The same rows as harness.toolkit.changes.changed_rows gives. -#}
{% macro changed_rows(relation, events=none, keys=none, preimages=false) -%}
    {%- if not execute or flags.EMPTY or model.resource_type == 'unit_test' -%}
        {%- do return("(select *, 'insert' as _change_type from " ~ relation ~ ")") -%}
    {%- endif -%}
    {%- set keys = [keys] if keys is string else keys or [] -%}
    {%- set table = heartbeat._table_facts(relation) -%}
    {%- set range = heartbeat._range_of_changes(relation, table, events) -%}
    {%- set range = heartbeat._available_range(relation, table, range) -%}
    {%- if range.why is defined -%}
        {%- do log("changed_rows of " ~ table.name ~ ": " ~ range.why, info=true) -%}
    {%- endif -%}
    {%- if range.since is not none and not range.is_nothing and table.format != 'HIVE' -%}
        {%- set state = relation ~ " version as of " -%}
        {%- set before = dict(heartbeat._query_rows("describe query select * from " ~ state ~ range.since, 2)) -%}
        {%- set after = dict(heartbeat._query_rows("describe query select * from " ~ state ~ range.until, 2)) -%}
        {%- set differs = heartbeat._why_not_compared(before, after) -%}
        {%- if differs is none -%}
            {%- do heartbeat._check_columns(relation, after.keys() | list, keys) -%}
            {%- set columns = heartbeat._columns_to_compare(before, after) -%}
            {%- if range.by_feed -%}
                {%- set feed = "table_changes('" ~ relation ~ "', " ~ (range.since | int + 1) ~ ", " ~ range.until ~ ")" -%}
                {%- set rows = heartbeat._rows_of_log_sql(feed, columns) -%}
            {%- else -%}
                {%- set rows = heartbeat._rows_of_states_sql(state ~ range.since, state ~ range.until, columns) -%}
            {%- endif -%}
            {%- do return("(" ~ heartbeat._net_changes_sql(rows, columns, keys, preimages) ~ ")") -%}
        {%- endif -%}
        {%- do log("changed_rows of " ~ table.name ~ ": " ~ differs ~ ", so all rows are given", info=true) -%}
    {%- endif -%}
    {%- do return("(" ~ heartbeat._gained_rows_sql(relation, table, range) ~ ")") -%}
{%- endmacro %}

{#- The first and last snapshot of the changes and, where all rows are read instead, the reason. Without a first
    snapshot all rows are new. -#}
{% macro _range_of_changes(relation, table, given) -%}
    {%- set since = var('heartbeat_from_snapshot', none) -%}
    {%- set until = var('heartbeat_to_snapshot', none) -%}
    {%- if model.config.materialized == 'refresh' -%}
        {#- A rebuilt one has the earlier batches in its own batch archive. -#}
        {%- set is_built_whole = load_relation(this) is none -%}
    {%- else -%}
        {%- set is_built_whole = model.config.materialized == 'incremental' and not is_incremental() -%}
    {%- endif -%}
    {%- set events = heartbeat._run_payload(given) -%}
    {%- if given is none and until is not none -%}
        {%- set range = {'since': since, 'until': until} -%}
    {%- elif events is not none -%}
        {%- set range = heartbeat._chain_of_events(heartbeat._events_of_table(events, table), table) -%}
    {%- elif is_built_whole or flags.WHICH not in ('run', 'build', 'retry') -%}
        {%- set range = {'since': none, 'until': none} -%}
    {%- else -%}
        {%- do exceptions.raise_compiler_error(
            "changed_rows: this run was handed no events, so it is not known which rows of " ~ table.name ~ " it has "
            ~ "not seen: let Heartbeat start it, set the variable heartbeat_events (or heartbeat_from_snapshot and "
            ~ "heartbeat_to_snapshot), or build the model again with --full-refresh") -%}
    {%- endif -%}
    {%- if is_built_whole -%}
        {%- do return({'since': none, 'until': range.until, 'why': "this model is built again, of all rows"}) -%}
    {%- endif -%}
    {%- do return(range) -%}
{%- endmacro %}

{#- The events in the payload of this run; none if it has no payload, which differs from an empty list. -#}
{% macro _run_payload(given=none) -%}
    {%- set handed = given if given is not none else var('heartbeat_events', env_var('HEARTBEAT_EVENTS', '')) -%}
    {%- if handed is string -%}
        {%- if not handed | trim -%}
            {%- do return(none) -%}
        {%- endif -%}
        {%- set handed = fromjson(handed) -%}
    {%- endif -%}
    {%- if handed is mapping and handed.events_file is defined -%}
        {%- set lines = heartbeat._query_rows("select value from text.`" ~ handed.events_file ~ "`") -%}
        {%- set handed = fromjson(lines | map('first') | join('\n')) -%}
    {%- endif -%}
    {%- if handed is none or handed is mapping or handed is not sequence -%}
        {%- do exceptions.raise_compiler_error(
            "changed_rows: what this run was handed is neither a JSON list of events nor a reference with an "
            ~ "events_file: pass on what Heartbeat started the job with, as the variable heartbeat_events") -%}
    {%- endif -%}
    {%- do return(handed) -%}
{%- endmacro %}

{#- The events of one table, by its name, or by its folder where the sensor watches the folder. -#}
{% macro _events_of_table(events, table) -%}
    {%- set names = [] -%}
    {%- for name in [table.name, table.location] -%}
        {%- do names.append(heartbeat._plain_name(name)) -%}
    {%- endfor -%}
    {%- set found = [] -%}
    {%- for event in events if event.table and heartbeat._plain_name(event.table) in names -%}
        {%- do found.append(dict(event, tags=event.get('tags') or {})) -%}
    {%- endfor -%}
    {%- do return(found) -%}
{%- endmacro %}

{#- The range that the events of one table cover; of a table without snapshots, the values of its partitions. -#}
{% macro _chain_of_events(events, table) -%}
    {%- if not events -%}
        {%- do return({'since': none, 'until': none, 'is_nothing': true, 'why': "there is no event of it"}) -%}
    {%- endif -%}
    {%- set chain = heartbeat._event_chain(events, table.format) -%}
    {%- set range = {'since': chain.since, 'until': chain.until} -%}
    {%- set why = chain.why -%}
    {%- if chain.partitions is not none -%}
        {%- set why = heartbeat._why_not_picked(chain.partitions, table.partition_columns | length) -%}
        {%- set partitions = [] -%}
        {%- for levels in chain.partitions -%}
            {%- set values = [] -%}
            {%- for level in levels -%}
                {#- A producer may have omitted the quotes. -#}
                {%- do values.append(fromjson(level, level)) -%}
            {%- endfor -%}
            {%- do partitions.append(values) -%}
        {%- endfor -%}
        {%- do range.update({} if why else {'partitions': partitions}) -%}
    {%- elif chain.fault in ('gap', 'fork') -%}
        {%- do range.update(snapshots=chain.events | map(attribute='snapshot_id') | list) -%}
    {%- endif -%}
    {%- do return(dict(range, why=why) if why else range) -%}
{%- endmacro %}

{#- The range, if both of its ends can still be read; else the whole table, and the reason. -#}
{% macro _available_range(relation, table, range) -%}
    {%- if range.is_nothing or range.until is none or table.format == 'HIVE' -%}
        {%- do return(range) -%}
    {%- elif range.since | string == range.until | string -%}
        {%- do return(dict(range, is_nothing=true, why="both ends are the same snapshot")) -%}
    {%- endif -%}
    {%- if table.format == 'ICEBERG' -%}
        {%- set history = heartbeat._iceberg_history_since(relation, range) -%}
    {%- else -%}
        {%- set history = heartbeat._delta_history_since(relation, range) -%}
    {%- endif -%}
    {%- if range.until | string not in history.snapshots or history.unordered is defined -%}
        {%- set why = history.unordered | default("snapshot " ~ range.until ~ " is not there any more", true) -%}
        {%- do return({'since': none, 'until': none, 'why': why ~ ", so all rows are given as they are now"}) -%}
    {%- elif range.since is not none and (range.since | string not in history.snapshots or history.lost is defined) -%}
        {%- set why = history.lost | default("snapshot " ~ range.since ~ " is not there any more", true) -%}
        {%- do return({'since': none, 'until': range.until, 'why': why ~ ", so all rows are given"}) -%}
    {%- endif -%}
    {%- set has_feed = 'enablechangedatafeed=true' in table.properties | lower | replace(' ', '') -%}
    {%- set by_feed = has_feed and range.why is not defined and history.rewritten is not defined -%}
    {%- do return(dict(range, by_feed=by_feed)) -%}
{%- endmacro %}

{#- Rows without a former state, each as an insertion: the whole table, some partitions, or none. -#}
{% macro _gained_rows_sql(relation, table, range) -%}
select *, 'insert' as _change_type
from {{ relation }}
{%- if range.is_nothing %}
where false
{%- elif range.partitions is defined %}
where false
    {%- for values in range.partitions %}
    or (
        {%- for column in table.partition_columns %}
        {%- set value = values[loop.index0] %}
        {{ "and " if not loop.first -}}
        {{ adapter.quote(column.name) }} <=> cast(
            {{- "null" if value is none else heartbeat._sql_literal(value, 'string') }} as {{ column.type }})
        {%- endfor %}
    )
    {%- endfor %}
{%- elif range.until is not none %}
version as of {{ range.until | int }}
{%- endif %}
{%- endmacro %}

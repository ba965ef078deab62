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
            "changed_rows: this run was handed no events, so nobody knows which rows of " ~ table.name ~ " it has "
            ~ "not seen: let Heartbeat start it, set the variable heartbeat_events (or heartbeat_from_snapshot and "
            ~ "heartbeat_to_snapshot), or build the model anew with --full-refresh") -%}
    {%- endif -%}
    {%- if is_built_whole -%}
        {%- do return({'since': none, 'until': range.until, 'why': "this model is built anew, of all rows"}) -%}
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

{#- The range that the events of one table cover, by the rules of harness/toolkit/changes/chain.py. -#}
{% macro _chain_of_events(events, table) -%}
    {%- set formats = events | map(attribute='table_format') | map('upper') | unique | list -%}
    {%- set ids = events | map(attribute='tags') | selectattr('table_id', 'defined')
        | map(attribute='table_id') | unique | list -%}
    {%- if not events -%}
        {%- do return({'since': none, 'until': none, 'is_nothing': true, 'why': "no event tells of it"}) -%}
    {%- elif formats != [table.format] -%}
        {%- do return({'since': none, 'until': none, 'why': "the table was of another format before"}) -%}
    {%- elif ids | length > 1 or events | selectattr('tags.recreated', 'defined') | list -%}
        {%- do return({'since': none, 'until': none, 'why': "the table was dropped and created again"}) -%}
    {%- elif table.format == 'HIVE' -%}
        {%- do return(heartbeat._chain_of_partitions(events, table)) -%}
    {%- endif -%}
    {%- set chain = heartbeat._chain_of_versions(events) if table.format == 'DELTA'
        else heartbeat._chain_of_snapshots(events) -%}
    {%- if chain.until is not none and events | selectattr('tags.first_sight', 'defined') | list -%}
        {%- do chain.update(since=none, why="an event is the first that was seen of it") -%}
    {%- endif -%}
    {%- for flag in ['gap', 'rolled_back', 'replaced', 'overwrite', 'schema_changed'] -%}
        {%- for event in events if chain.why is not defined and event.tags.get(flag, 'false') != 'false' -%}
            {%- do chain.update(why="snapshot " ~ event.snapshot_id ~ " is marked " ~ flag) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(chain) -%}
{%- endmacro %}

{#- The range of events of a Delta table: each covers all versions after its predecessor. -#}
{% macro _chain_of_versions(events) -%}
    {%- set steps = [] -%}
    {%- for event in events -%}
        {%- set step = {'since': event.get('prev_snapshot_id'), 'until': event.get('snapshot_id')} -%}
        {%- set is_version = (step.until | string).isdigit() and (step.since or '0') | string | int(-1) >= 0 -%}
        {%- if not is_version or (step.since is not none and step.since | int >= step.until | int) -%}
            {%- do return({'since': none, 'until': none, 'why':
                "version " ~ step.until ~ " after version " ~ step.since ~ " is none"}) -%}
        {%- endif -%}
        {%- set since = -1 if step.since is none else step.since | int -%}
        {%- do steps.append({'since': since, 'until': step.until | int}) -%}
    {%- endfor -%}
    {%- set reached = namespace(until=none, why=none) -%}
    {%- for step in steps | sort(attribute='since') -%}
        {%- if reached.until is not none and step.since > reached.until and reached.why is none -%}
            {%- set reached.why = "no event tells of version " ~ (reached.until + 1) -%}
        {%- endif -%}
        {%- set reached.until = [reached.until or 0, step.until] | max -%}
    {%- endfor -%}
    {%- set since = steps | map(attribute='since') | min -%}
    {%- set chain = {'since': none if since < 0 else since, 'until': reached.until} -%}
    {%- if since < 0 -%}
        {%- do chain.update(why="no version comes before the first event") -%}
    {%- elif reached.why is not none -%}
        {%- do chain.update(why=reached.why) -%}
    {%- endif -%}
    {%- do return(chain) -%}
{%- endmacro %}

{#- The range of events of an Iceberg table, each of which names the snapshot before it. -#}
{% macro _chain_of_snapshots(events) -%}
    {%- set steps = {} -%}
    {%- for event in events if (event.get('prev_snapshot_id'), event.get('snapshot_id')) not in steps -%}
        {%- do steps.update({(event.get('prev_snapshot_id'), event.get('snapshot_id')): event}) -%}
    {%- endfor -%}
    {%- set after = dict(steps.keys()) -%}
    {%- set snapshots = steps.values() | map(attribute='snapshot_id') | unique | list -%}
    {%- set starts = after.keys() | reject('in', snapshots) | list -%}
    {%- set has_fork = after | length < steps | length or snapshots | length < steps | length -%}
    {%- set no_range = {'since': none, 'until': none, 'why': "its events do not follow each other without a break"} -%}
    {%- if none in snapshots or not (starts or has_fork) -%}
        {%- do return(no_range) -%}
    {%- elif has_fork or starts | length > 1 -%}
        {%- set told = heartbeat._ends_by_time(steps.values() | list) -%}
        {%- do return(dict(no_range, snapshots=snapshots, **told)) -%}
    {%- endif -%}
    {%- set place = namespace(id=starts[0], steps=0) -%}
    {%- for _ in steps if place.id in after -%}
        {%- set place.id = after[place.id] -%}
        {%- set place.steps = place.steps + 1 -%}
    {%- endfor -%}
    {%- if place.steps < steps | length -%}
        {%- do return(no_range) -%}
    {%- endif -%}
    {%- if starts[0] is none -%}
        {%- do return({'since': none, 'until': place.id, 'why': "no snapshot comes before the first event"}) -%}
    {%- endif -%}
    {%- do return({'since': starts[0], 'until': place.id}) -%}
{%- endmacro %}

{#- The two ends of events that do not form a chain, by the times of their commits, if these are known. -#}
{% macro _ends_by_time(events) -%}
    {%- set times = events | map(attribute='snapshot_ts') | unique | list -%}
    {%- set firsts = events | selectattr('prev_snapshot_id', 'none') | list
        + events | selectattr('tags.first_sight', 'defined') | list -%}
    {%- set taken_back = events | selectattr('tags.rolled_back', 'defined') | list -%}
    {%- if none in times or times | length < events | length or firsts or taken_back -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set in_order = events | sort(attribute='snapshot_ts') -%}
    {%- do return({'since': in_order[0].prev_snapshot_id, 'until': in_order[-1].snapshot_id}) -%}
{%- endmacro %}

{#- The partitions that events of a table without snapshots name; each is read in full, as it is now. -#}
{% macro _chain_of_partitions(events, table) -%}
    {%- set whole = {'since': none, 'until': none} -%}
    {%- set partitions = [] -%}
    {%- for event in events -%}
        {%- if event.get('partition') is not none -%}
            {%- set values = [] -%}
            {%- for value in event.partition -%}
                {#- A producer may have omitted the quotes. -#}
                {%- do values.append(fromjson(value, value)) -%}
            {%- endfor -%}
            {%- do partitions.append(values) -%}
        {%- elif event.tags.partitions is defined and event.tags.partitions_truncated is not defined -%}
            {%- do partitions.extend(fromjson(event.tags.partitions)) -%}
        {%- else -%}
            {%- do return(dict(whole, why="an event is of the table as a whole")) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set levels = table.partition_columns | length -%}
    {%- for values in partitions if values | length != levels -%}
        {%- do return(dict(whole, why="an event names a partition of another number of levels")) -%}
    {%- endfor -%}
    {%- if partitions | length > 200 -%}
        {%- do return(dict(whole, why=partitions | length ~ " partitions changed")) -%}
    {%- endif -%}
    {%- do return(dict(whole, partitions=partitions)) -%}
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

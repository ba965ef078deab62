{#- The events of one table in their order, each step once, and the range that they cover. Python calls the same macro
    (harness/toolkit/changes/chain.py), so nothing here queries a database. A chain has events, not the table: what is
    missing between two events may have changed nothing. Its keys:
    events      oldest first
    since       the snapshot before the first change; none: all rows count as new
    until       the snapshot after the last one; none: the table as it is now
    partitions  of a table without snapshots those that the events name, one JSON value per level
    fault       what prevents reading change by change: gap, fork, rewrite, schema, first_sight, recreated or unknown
    why         the fault in words
    marked      what the events themselves are marked with, as another fault and why; it holds even if a gap is none -#}
{% macro _event_chain(events, format) -%}
    {%- set others = events | map(attribute='table_format') | map('upper') | reject('eq', format) | unique | sort -%}
    {#- Before those of one step are put together: two tables may have the same versions. -#}
    {%- set ids = events | map(attribute='tags') | selectattr('table_id', 'defined') | map(attribute='table_id')
        | unique(case_sensitive=true) | list -%}
    {%- set steps = heartbeat._steps_of_events(events, format) -%}
    {%- set chain = {'events': steps, 'since': none, 'until': none, 'partitions': none, 'fault': none, 'why': none,
        'marked': none} -%}
    {%- if others -%}
        {%- do chain.update(fault='recreated', why="the table was of " ~ others | join(', ') ~ " before") -%}
    {%- elif ids | length > 1 or events | selectattr('tags.recreated', 'defined') | list -%}
        {%- do chain.update(fault='recreated', why="the table was dropped and created again") -%}
    {%- elif format == 'HIVE' -%}
        {%- do chain.update(heartbeat._chain_of_partitions(steps)) -%}
    {%- else -%}
        {%- do chain.update(heartbeat._chain_of_versions(steps) if format == 'DELTA'
            else heartbeat._chain_of_snapshots(steps)) -%}
        {%- do chain.update(marked=heartbeat._mark_of_events(chain.events)) -%}
        {%- if chain.fault is none and chain.marked is not none -%}
            {%- do chain.update(chain.marked) -%}
        {%- endif -%}
    {%- endif -%}
    {%- do return(chain) -%}
{%- endmacro %}

{#- The events in their order (`order`), those of one step as one, with the tags of all. -#}
{% macro _steps_of_events(events, format) -%}
    {%- set steps = {} -%}
    {%- for event in events -%}
        {%- set since = none if event.get('prev_snapshot_id') is none else event.prev_snapshot_id | string -%}
        {%- set until = none if event.get('snapshot_id') is none else event.snapshot_id | string -%}
        {%- set times = (event.get('snapshot_ts') or 0, event.get('event_ts') or 0) -%}
        {%- set key = (since, until) -%}
        {%- if format == 'DELTA' -%}
            {%- set order = (until | int, since | int(-1)) -%}
        {%- elif format == 'ICEBERG' -%}
            {%- set order = times -%}
        {%- else -%}
            {%- set order = (times[1], times[0]) -%}
            {%- set key = (since, until, tojson(event.get('partition')), event.get('event_id')) -%}
        {%- endif -%}
        {%- set step = steps.get(key, dict(event, prev_snapshot_id=since, snapshot_id=until,
            snapshot_ts=event.get('snapshot_ts'), order=order)) -%}
        {%- do steps.update({key: dict(step, tags=dict(step.tags, **event.tags))}) -%}
    {%- endfor -%}
    {%- do return(steps.values() | sort(attribute='order')) -%}
{%- endmacro %}

{#- The chain of a Delta table: an event covers all versions after the one before it, up to its own. Versions that only
    maintain the table are no events, so the one before need not be the last one. -#}
{% macro _chain_of_versions(steps) -%}
    {%- for step in steps -%}
        {%- set digits = (step.snapshot_id or '-') ~ (step.prev_snapshot_id or '') -%}
        {%- if not (digits.isascii() and digits.isdigit()) or step.order[1] >= step.order[0] -%}
            {%- do return({'fault': 'unknown', 'why':
                "version " ~ step.snapshot_id ~ " cannot follow version " ~ step.prev_snapshot_id}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set until = steps[-1].snapshot_id -%}
    {%- if heartbeat._has_first_sight(steps) -%}
        {%- do return({'until': until, 'fault': 'first_sight', 'why': "no snapshot comes before the first event"}) -%}
    {%- endif -%}
    {%- set by_start = steps | sort(attribute='order.1') -%}
    {%- set chain = {'since': by_start[0].order[1] | string, 'until': until} -%}
    {%- set reached = namespace(version=by_start[0].order[0]) -%}
    {%- for step in by_start -%}
        {%- if step.order[1] > reached.version -%}
            {%- do return(dict(chain, fault='gap', why="no event covers version " ~ (reached.version + 1))) -%}
        {%- endif -%}
        {%- set reached.version = [reached.version, step.order[0]] | max -%}
    {%- endfor -%}
    {%- do return(chain) -%}
{%- endmacro %}

{#- The chain of an Iceberg table, whose events each name the snapshot before them. -#}
{% macro _chain_of_snapshots(steps) -%}
    {%- if steps | selectattr('snapshot_id', 'none') | list -%}
        {%- do return({'fault': 'recreated', 'why': "the table was replaced by one without data"}) -%}
    {%- endif -%}
    {%- set following = {} -%}
    {%- set leading = {} -%}
    {%- for step in steps -%}
        {%- if step.prev_snapshot_id in following or step.snapshot_id in leading -%}
            {%- set id = step.prev_snapshot_id if step.prev_snapshot_id in following else step.snapshot_id -%}
            {%- set why = "two events lead from or to " ~ (id or "no snapshot") -%}
            {%- do return(dict(heartbeat._ends_by_time(steps), fault='fork', why=why)) -%}
        {%- endif -%}
        {%- do following.update({step.prev_snapshot_id: step}) -%}
        {%- do leading.update({step.snapshot_id: step}) -%}
    {%- endfor -%}
    {%- set starts = following.keys() | reject('in', leading) | list -%}
    {%- if not starts -%}
        {%- do return({'fault': 'fork', 'why': "the events lead in a circle"}) -%}
    {%- elif starts | length > 1 -%}
        {%- set why = "no event leads to snapshot " ~ (starts[1] or "the first one") -%}
        {%- do return(dict(heartbeat._ends_by_time(steps), fault='gap', why=why)) -%}
    {%- endif -%}
    {%- set row = [following[starts[0]]] -%}
    {%- for _ in steps -%}
        {%- if row[-1].snapshot_id in following -%}
            {%- do row.append(following[row[-1].snapshot_id]) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set chain = {'events': row, 'until': row[-1].snapshot_id} -%}
    {%- if row | length < steps | length -%}
        {%- do return({'fault': 'fork', 'why': "some of the events lead in a circle"}) -%}
    {%- elif heartbeat._has_first_sight(row) -%}
        {%- do return(dict(chain, fault='first_sight', why="no snapshot comes before the first event")) -%}
    {%- endif -%}
    {%- do return(dict(chain, since=starts[0])) -%}
{%- endmacro %}

{#- The two ends of events that do not form a chain, by the times of their commits, if these are known. -#}
{% macro _ends_by_time(steps) -%}
    {%- set times = steps | map(attribute='snapshot_ts') | unique | list -%}
    {#- After snapshots were taken back, the newest one is not the last. -#}
    {%- set taken_back = steps | selectattr('tags.rolled_back', 'defined') | list -%}
    {%- if none in times or times | length < steps | length or taken_back or heartbeat._has_first_sight(steps) -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- do return({'since': steps[0].prev_snapshot_id, 'until': steps[-1].snapshot_id}) -%}
{%- endmacro %}

{#- Whether one of the events stands for all that the table had. -#}
{% macro _has_first_sight(steps) -%}
    {%- set first = steps | selectattr('prev_snapshot_id', 'none') | list
        + steps | selectattr('tags.first_sight', 'defined') | list -%}
    {%- do return(first | length > 0) -%}
{%- endmacro %}

{#- What an event is marked with that no change by change can follow, as fault and why; none if there is no such event. -#}
{% macro _mark_of_events(steps) -%}
    {%- for tag, fault, why in [
        ('gap', 'gap', "changes before %s were lost before they were seen"),
        ('rolled_back', 'rewrite', "snapshots were rolled back, to %s"),
        ('replaced', 'rewrite', "the table was replaced in %s"),
        ('overwrite', 'rewrite', "rows were overwritten in %s"),
        ('schema_changed', 'schema', "the schema changed before %s"),
    ] -%}
        {%- for step in steps if step.tags.get(tag, 'false') != 'false' -%}
            {%- do return({'fault': fault, 'why': why | format(step.snapshot_id)}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- The partitions that events of a table without snapshots name; each is read in full, as it is now. -#}
{% macro _chain_of_partitions(steps) -%}
    {%- set whole = {'fault': 'first_sight', 'why': "an event covers the entire table"} -%}
    {%- set partitions = {} -%}
    {%- for step in steps -%}
        {%- set is_one = step.get('partition') is not none -%}
        {%- set listed = none if 'partitions_truncated' in step.tags else fromjson(step.tags.get('partitions', ''), none) -%}
        {%- set rows = [step.partition] if is_one else listed -%}
        {%- if rows is string or rows is not iterable -%}
            {%- do return(whole) -%}
        {%- endif -%}
        {%- for row in rows -%}
            {%- if row is string or row is not iterable -%}
                {%- do return(whole) -%}
            {%- endif -%}
            {%- set levels = [] -%}
            {%- for value in row -%}
                {%- do levels.append(value | string if is_one else tojson(value)) -%}
            {%- endfor -%}
            {%- do partitions.update({levels | join('\n'): levels}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return({'partitions': partitions.values() | sort}) -%}
{%- endmacro %}

{#- Why partitions are not picked out one by one; none if they are. -#}
{% macro _why_not_picked(partitions, level_count) -%}
    {%- if partitions | length > 200 -%}
        {%- do return(partitions | length ~ " partitions changed") -%}
    {%- endif -%}
    {%- for levels in partitions if levels | length != level_count -%}
        {%- do return("an event names the partition (" ~ levels | join(', ') ~ ") of a table with " ~ level_count ~ " levels") -%}
    {%- endfor -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- The arguments of data_change_events_between, checked: the `column` of a range, its `start` and `end` in milliseconds,
    the `leeway` by which the rows of one event may differ in it, `table`, `operation`, `tags`, and a `partition` as the
    plain text of its levels. Python calls the same macro (harness/toolkit/changes/search.py), so nothing here queries a
    database. -#}
{% macro _event_question(asked) -%}
    {%- set table, partition, tags = asked.get('table'), asked.get('partition'), asked.get('tags') or {} -%}
    {%- set start, end = asked.get('start'), asked.get('end') -%}
    {%- set operation = asked.get('operation') -%}
    {%- set by = asked.get('by') or 'registration' -%}
    {%- set columns = {'registration': 'event_ts', 'snapshot': 'snapshot_ts'} -%}
    {%- set operations = ['APPEND', 'DELETE', 'UPDATE'] -%}
    {%- set from_ms = none if start is none else heartbeat._epoch_milliseconds(start, 'The start') -%}
    {%- set to_ms = none if end is none else heartbeat._epoch_milliseconds(end, 'The end') -%}
    {%- if from_ms is not none and to_ms is not none and from_ms > to_ms -%}
        {%- do exceptions.raise_compiler_error("The range begins at " ~ heartbeat._instant_text(from_ms)
            ~ ", after its end at " ~ heartbeat._instant_text(to_ms) ~ "; swap the two") -%}
    {%- elif by | trim | lower not in columns -%}
        {%- do exceptions.raise_compiler_error(
            "Events cannot be selected by '" ~ by ~ "'; allowed are " ~ columns | join(' and ')) -%}
    {%- elif operation is not none and operation | trim | upper not in operations -%}
        {%- do exceptions.raise_compiler_error(
            "There is no operation '" ~ operation ~ "'; allowed are " ~ operations | join(', ')) -%}
    {%- elif table is not none and not heartbeat._plain_name(table) -%}
        {%- do exceptions.raise_compiler_error("The table has no name; leave it out for every table") -%}
    {%- endif -%}
    {%- for key, value in tags.items() if key is not string or value is not string -%}
        {%- do exceptions.raise_compiler_error(
            "The tag '" ~ key ~ "' with the value " ~ value ~ " is not text; write both as text") -%}
    {%- endfor -%}
    {%- do return({
        'column': columns[by | trim | lower],
        'start': from_ms,
        'end': to_ms,
        'leeway': 86400000 if by | trim | lower == 'snapshot' else 0,
        'table': table,
        'operation': none if operation is none else operation | trim | upper,
        'tags': dict(tags),
        'partition': none if partition is none else heartbeat._plain_levels(partition),
    }) -%}
{%- endmacro %}

{#- The levels of a partition as plain text: what JSON puts around text is left out, so "5" and 5 are equal. -#}
{% macro _plain_levels(partition) -%}
    {%- set values = [partition] if partition is string else partition -%}
    {%- if not values or values is mapping or values is not sequence -%}
        {%- do exceptions.raise_compiler_error(
            "The partition " ~ partition ~ " is not a list with one value per level, such as ['2026-03-01']") -%}
    {%- endif -%}
    {%- set levels = [] -%}
    {%- for value in values -%}
        {%- if value is string and value[:1] == '"' -%}
            {%- do levels.append(fromjson(value, value) | string) -%}
        {%- elif value is none or value is boolean or value is mapping or value is sequence and value is not string -%}
            {%- do levels.append(tojson(value)) -%}
        {%- else -%}
            {%- do levels.append(value | string) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(levels) -%}
{%- endmacro %}

{#- An instant as milliseconds since the epoch, rounded up: the first event that counts is at or after it. Eight digits
    are a day, as ISO 8601 has it. -#}
{% macro _epoch_milliseconds(value, name) -%}
    {%- set epoch = modules.datetime.datetime.fromisoformat('1970-01-01T00:00:00+00:00') -%}
    {%- set text = value | string | trim -%}
    {%- set day = '[0-9]{4}-?([0-9]{2}-?[0-9]{2}|W[0-9]{2}(-?[0-9])?)' -%}
    {%- set found = namespace(at=none, since=none) -%}
    {%- if (value is string or value is integer) and modules.re.fullmatch('(?![0-9]{8}$)[+-]?[0-9]+', text) -%}
        {%- set found.at = text | int -%}
    {%- elif value is string and modules.re.fullmatch(day ~ '([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?', text) -%}
        {%- set read = modules.datetime.datetime.fromisoformat(text) -%}
        {%- set found.since = (read if read.tzinfo else read.replace(tzinfo=epoch.tzinfo)) - epoch -%}
    {%- elif value.tzinfo -%}
        {%- set found.since = value - epoch -%}
    {%- endif -%}
    {%- if found.since is not none -%}
        {%- set found.at = found.since.days * 86400000 + found.since.seconds * 1000 + (found.since.microseconds + 999) // 1000 -%}
    {%- endif -%}
    {%- if found.at is none or found.at | abs > 253402300799999 -%}
        {%- do exceptions.raise_compiler_error(name ~ " '" ~ value ~ "' is not an instant; write for example 2026-03-01T08:00Z "
            ~ "(UTC where no zone is named), or milliseconds since the epoch") -%}
    {%- endif -%}
    {%- do return(found.at) -%}
{%- endmacro %}

{#- Milliseconds since the epoch for a person. -#}
{% macro _instant_text(at) -%}
    {%- set epoch = modules.datetime.datetime.fromisoformat('1970-01-01T00:00:00+00:00') -%}
    {%- set text = (epoch + modules.datetime.timedelta(milliseconds=at)).isoformat(timespec='milliseconds') -%}
    {%- do return(text | replace('+00:00', 'Z') | replace('.000', '')) -%}
{%- endmacro %}

{#- A condition: the event has this partition, all of these tags and this operation. -#}
{% macro _event_condition(event, partition=none, tags=none, operation=none) -%}
    {%- set operations = ['APPEND', 'DELETE', 'UPDATE'] -%}
    {%- if operation is not none and operation | trim | upper not in operations -%}
        {{ exceptions.raise_compiler_error("operation '" ~ operation ~ "' is none of " ~ operations | join(', ')) }}
    {%- endif -%}
    true
    {%- if operation is not none %}
        and {{ event }}.operation_type = '{{ operation | trim | upper }}'
    {%- endif %}
    {%- for key, value in (tags or {}).items() %}
        and try_element_at({{ event }}.tags, {{ heartbeat._sql_literal(key, 'string') }}) = {{ heartbeat._sql_literal(value, 'string') }}
    {%- endfor %}
    {%- if partition is not none %}
        and {{ heartbeat._has_partition(event, partition) }}
    {%- endif %}
{%- endmacro %}

{#- A condition: the event names this partition, itself or in its tag partitions. Values are compared as text, without
    JSON quotes: "5" and 5 are equal. -#}
{% macro _has_partition(event, partition) -%}
    {%- set levels = [partition] if partition is string else partition -%}
    {%- if not levels -%}
        {{ exceptions.raise_compiler_error("partition is empty; give a list with one value per level") }}
    {%- endif -%}
    {%- set wanted -%}
        array(
        {%- for level in levels -%}
            {%- set is_json = level is string and level[:1] == '"' -%}
            {%- set text = level if level is string or level is number and level is not boolean else tojson(level) -%}
            {{ heartbeat._sql_literal(fromjson(text, text) if is_json else text, 'string') }}
            {{- ", " if not loop.last -}}
        {%- endfor -%}
        )
    {%- endset -%}
    coalesce(
        transform(
            {{ event }}.`partition`,
            level -> if(
                level like '"%',
                coalesce(get_json_object(concat('[', level, ']'), '$[0]'), level),
                level
            )
        ) = {{ wanted }},
        exists(
            from_json(try_element_at({{ event }}.tags, 'partitions'), 'array<array<string>>'),
            named -> transform(named, level -> coalesce(level, 'null')) = {{ wanted }}
        )
        {%- if levels | length == 1 %}
        or exists(
            from_json(try_element_at({{ event }}.tags, 'partitions'), 'array<string>'),
            named -> array(coalesce(named, 'null')) = {{ wanted }}
        )
        {%- endif %}
    )
{%- endmacro %}

{#- The column that a range of time applies to. -#}
{% macro _event_time_column(by) -%}
    {%- set columns = {'registration': 'event_ts', 'snapshot': 'snapshot_ts'} -%}
    {%- if by not in columns -%}
        {{ exceptions.raise_compiler_error("by '" ~ by ~ "' is none of registration and snapshot") }}
    {%- endif -%}
    {{ columns[by] }}
{%- endmacro %}

{#- An instant as milliseconds since the epoch, rounded up; empty for none. -#}
{% macro _epoch_milliseconds(value, name) -%}
    {%- if value is not none -%}
        {%- set text = value | string | trim -%}
        {%- set is_text = value is string -%}
        {%- if modules.re.fullmatch('(?![0-9]{8}$)[+-]?[0-9]+', text) -%}
            {{ text | int }}
        {%- elif is_text and not modules.re.fullmatch('[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?', text) -%}
            {{ exceptions.raise_compiler_error(name ~ " '" ~ value ~ "' is no instant; write for example 2026-03-01T08:00Z, or milliseconds since the epoch") }}
        {%- else -%}
            {%- set utc = modules.pytz.utc -%}
            {%- set read = modules.datetime.datetime.fromisoformat(text) if is_text else value -%}
            {%- set at = read if read.tzinfo else read.replace(tzinfo=utc) -%}
            {%- set since = at - modules.datetime.datetime(1970, 1, 1, tzinfo=utc) -%}
            {{ since.days * 86400000 + since.seconds * 1000 + (since.microseconds + 999) // 1000 }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

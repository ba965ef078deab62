{#- The system columns that depend on a row alone, as SQL; among them `s_is_rejected`. -#}
{% macro _refresh_derived_columns(run) -%}
    {%- set settings = run.settings -%}
    {%- if settings.type == 'key' -%}
        {%- set missing = [] -%}
        {%- for column in settings.key if settings.null_keys != 'match' -%}
            {%- do missing.append(adapter.quote(column) ~ " is null") -%}
        {%- endfor -%}
        {%- set dated_by = settings.updated_at or settings.extracted_at -%}
        {%- if dated_by -%}
            {%- set changed_at = heartbeat._refresh_time(settings, dated_by) -%}
            {%- do missing.append(changed_at ~ " is null") -%}
        {%- else -%}
            {%- set changed_at = "timestamp'" ~ (run.received_at or run_started_at) ~ "'" -%}
        {%- endif -%}
        {{ heartbeat._refresh_hash(heartbeat._refresh_tracked_columns(run)) }} as s_hash,
        {{ changed_at }} as s_update_timestamp,
        {{ "coalesce(" ~ settings['deletes.when'] ~ ", false)" if settings['deletes.when'] else "false" }} as s_deleted_flag,
        {{ missing | join(" or ") or "false" }} as s_is_rejected
    {%- elif settings.type == 'timestamp' -%}
        {%- set value = heartbeat._refresh_time(settings, settings.column) -%}
        {{ value }} as s_timestamp,
        {{ value }} is null as s_is_rejected
    {%- elif settings.type == 'sequence' -%}
        {%- set value = "try_cast(" ~ adapter.quote(settings.column) ~ " as decimal(38, 0))" -%}
        {{ value }} as s_sequence,
        {{ value }} is null as s_is_rejected
    {%- elif settings.extracted_at -%}
        {{ heartbeat._refresh_time(settings, settings.extracted_at) }} as s_timestamp,
        false as s_is_rejected
    {%- else -%}
        false as s_is_rejected
    {%- endif -%}
{%- endmacro %}

{#- The columns whose change is a change of the row: those listed in the settings, or all but keys and excluded ones.
    A date column has the time of a change, not its content, so it is not tracked. -#}
{% macro _refresh_tracked_columns(run) -%}
    {%- set settings = run.settings -%}
    {%- set listed = settings.hash_columns | map('lower') | list -%}
    {%- set dates = [settings.updated_at or '', settings.extracted_at or ''] -%}
    {%- set left_out = (settings.key + settings.exclude_from_cdc + dates) | map('lower') | list -%}
    {%- set tracked = [] -%}
    {%- for column in run.columns -%}
        {%- set name = column.name | lower -%}
        {%- if name in listed or (not listed and name not in left_out) -%}
            {%- do tracked.append(column) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(tracked) -%}
{%- endmacro %}

{#- The fingerprint of some columns of a row, as SQL. A NULL leaves no trace, not even its name, so a new column that
    is NULL changes no hash, and a value that moves to another column changes it. -#}
{% macro _refresh_hash(columns) -%}
    {%- set parts = [] -%}
    {%- for column in columns | sort(attribute='name') -%}
        {%- do parts.append("if(" ~ column.quoted ~ " is null, null, '" ~ column.name | lower ~ "')") -%}
        {%- do parts.append(heartbeat._refresh_canonical(column.quoted, column.type | lower)) -%}
    {%- endfor -%}
    {#- Without columns it is the hash of columns that are all NULL. -#}
    xxhash64({{ parts | join(", ") or "null" }})
{%- endmacro %}

{#- A value in a form that does not depend on the width of its type, or on the session's time zone. -#}
{% macro _refresh_canonical(quoted, type) -%}
    {%- if type in ('tinyint', 'smallint', 'int') -%}
        cast({{ quoted }} as bigint)
    {%- elif type == 'float' -%}
        cast({{ quoted }} as double)
    {%- elif type == 'date' -%}
        cast({{ quoted }} as timestamp_ntz)
    {%- elif type.startswith('decimal') -%}
        {%- if type.endswith(',0)') -%}
            cast({{ quoted }} as string)
        {%- else -%}
            trim(trailing '.' from trim(trailing '0' from cast({{ quoted }} as string)))
        {%- endif -%}
    {%- elif type.startswith('map') -%}
        {{ heartbeat._refresh_canonical("array_sort(map_entries(" ~ quoted ~ "))", 'array') }}
    {%- elif type.startswith('array') or type.startswith('struct') -%}
        to_json({{ quoted }}, map(
            'ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'))
    {%- else -%}
        {{ quoted }}
    {%- endif -%}
{%- endmacro %}

{#- The instant in a column that the settings name; NULL if it cannot be read. -#}
{% macro _refresh_time(settings, column) -%}
    {%- set quoted = adapter.quote(column) -%}
    {%- if settings.format -%}
        {%- set read = "try_to_timestamp(cast(" ~ quoted ~ " as string), " ~ heartbeat._sql_literal(settings.format, 'string') ~ ")" -%}
    {%- else -%}
        {%- set read = "try_cast(" ~ quoted ~ " as timestamp)" -%}
    {%- endif -%}
    {{ heartbeat._refresh_zoned(settings, read) }}
{%- endmacro %}

{#- An instant read as local time of the time zone in the settings, as SQL. -#}
{% macro _refresh_zoned(settings, read) -%}
    {%- if settings.time_zone -%}
        cast(convert_timezone('{{ settings.time_zone }}', current_timezone(), cast({{ read }} as timestamp_ntz)) as timestamp)
    {%- else -%}
        {{ read }}
    {%- endif -%}
{%- endmacro %}

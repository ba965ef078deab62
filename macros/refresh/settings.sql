{#- The settings of a refresh model, complete and checked: `meta.refresh` with defaults filled in. Invalid settings
    end the run with one sentence. -#}
{% macro _refresh_settings(node) -%}
    {%- do heartbeat._refresh_check_config(node) -%}
    {%- set given = {} -%}
    {%- for name, value in (node.config.get('meta', {}).get('refresh') or {}).items() -%}
        {%- if value is mapping -%}
            {%- for part, inner in value.items() -%}
                {%- do given.update({name ~ '.' ~ part: inner}) -%}
            {%- endfor -%}
        {%- else -%}
            {%- do given.update({name: value}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do heartbeat._refresh_check_settings(node, given) -%}
    {%- set settings = {} -%}
    {%- for name, option in heartbeat._refresh_options().items() if given.type in option.types -%}
        {%- set value = given.get(name) -%}
        {%- set value = option.get('defaults', {}).get(given.type, option.get('default')) if value is none else value -%}
        {%- do settings.update({name: [value] if option.legal == 'columns' and value is string else value}) -%}
    {%- endfor -%}
    {%- do return(settings) -%}
{%- endmacro %}

{#- Every setting of `meta.refresh`: the types that have it, its legal values, and its default (`defaults`: by type).
    A nested setting has both names, with a dot between. -#}
{% macro _refresh_options() -%}
    {%- set ranged = ['timestamp', 'sequence'] -%}
    {%- set all = ['key', 'full', 'none'] + ranged + ['custom'] -%}
    {%- do return(dict({
        'type': {'types': all, 'legal': all, 'is_needed': true},
        'batch_by': {'types': all, 'legal': 'column'},
        'on_duplicate_batch': {'types': all, 'legal': ['skip', 'append', 'fail'], 'default': 'skip', 'defaults': {'none': 'append'}},
        'watermark': {'types': all, 'legal': 'column'},
        'archive_days': {'types': all, 'legal': 'number'},
        'format': {'types': ['key', 'timestamp'], 'legal': 'text'},
        'time_zone': {'types': ['key', 'timestamp'], 'legal': 'text'},
        'extracted_at': {'types': ['key', 'full'], 'legal': 'column'},
        'history': {'types': ['key', 'full'], 'legal': 'boolean', 'default': true},
        'column': {'types': ranged, 'legal': 'column', 'is_needed': true},
        'null_values': {'types': ranged, 'legal': ['fail', 'quarantine'], 'default': 'fail'},
        'range_from': {'types': ranged, 'legal': 'value'},
        'range_to': {'types': ranged, 'legal': 'value'},
        'immutable_where': {'types': ranged, 'legal': 'text'},
        'max_range': {'types': ranged, 'legal': 'number'},
        'max_rewind': {'types': ['sequence'], 'legal': 'number'},
        'delete_condition': {'types': ['custom'], 'legal': 'text', 'is_needed': true},
        'append_filter': {'types': ['custom'], 'legal': 'text'},
        'diff_key': {'types': ['full'], 'legal': 'columns'},
        'keep_batches': {'types': ['full'], 'legal': 'number'},
        'max_shrink_percent': {'types': ['full'], 'legal': 'number'},
        'allow_empty': {'types': ['full'], 'legal': 'boolean', 'default': false},
    }, **heartbeat._refresh_key_options(['key']))) -%}
{%- endmacro %}

{#- The settings that only the type `key` has, in the form of _refresh_options. -#}
{% macro _refresh_key_options(types) -%}
    {%- do return({
        'key': {'types': types, 'legal': 'columns', 'is_needed': true},
        'updated_at': {'types': types, 'legal': 'column'},
        'exclude_from_cdc': {'types': types, 'legal': 'columns', 'default': []},
        'hash_columns': {'types': types, 'legal': 'columns', 'default': []},
        'tie_breaker': {'types': types, 'legal': 'columns', 'default': []},
        'unchanged_newer': {'types': types, 'legal': ['touch', 'skip'], 'default': 'touch'},
        'late_arriving': {'types': types, 'legal': ['ignore', 'history'], 'default': 'ignore'},
        'null_keys': {'types': types, 'legal': ['fail', 'quarantine', 'match'], 'default': 'fail'},
        'on_conflict': {'types': types, 'legal': ['pick', 'fail'], 'default': 'pick'},
        'missing_columns': {'types': types, 'legal': ['fail', 'as_null', 'keep'], 'default': 'fail'},
        'count_hub': {'types': types, 'legal': 'boolean', 'default': true},
        'deletes.when': {'types': types, 'legal': 'text'},
        'deletes.complete': {'types': types, 'legal': 'boolean', 'default': false},
        'deletes.max_percent': {'types': types, 'legal': 'number'},
        'deletes.mode': {'types': types, 'legal': ['hard', 'soft'], 'default': 'hard'},
    }) -%}
{%- endmacro %}

{#- The settings that determine the content of target table, history and batch log; the others only restrict which
    batches are accepted. -#}
{% macro _refresh_shaping_settings(settings) -%}
    {%- set shaping = {} -%}
    {%- for name in ['type', 'key', 'updated_at', 'format', 'time_zone', 'exclude_from_cdc', 'hash_columns', 'tie_breaker',
        'unchanged_newer', 'late_arriving', 'null_keys', 'deletes.when', 'deletes.complete', 'deletes.mode', 'column', 'delete_condition', 'append_filter',
        'extracted_at', 'history', 'watermark'] if name in settings -%}
        {%- do shaping.update({name: settings[name]}) -%}
    {%- endfor -%}
    {%- do return(shaping) -%}
{%- endmacro %}

{#- Ends the run if earlier batches were processed with other settings: target table and history would mix both. -#}
{% macro _refresh_check_unchanged_settings(run) -%}
    {%- set shaping = heartbeat._refresh_shaping_settings(run.settings) -%}
    {%- for batch in run.batches if batch.state in ('STAGED', 'COMPLETE') -%}
        {%- set before = fromjson(batch.settings) -%}
        {%- set changed = [] -%}
        {%- for name in ['type'] + shaping.keys() | list -%}
            {#- A setting that the package did not have then has its default. -#}
            {%- set was = before.get(name, heartbeat._refresh_options()[name].default) -%}
            {%- if was != run.settings.get(name) -%}
                {%- do changed.append(name ~ " was " ~ was ~ " and is " ~ run.settings.get(name)) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if changed -%}
            {%- do exceptions.raise_compiler_error(
                run.name ~ ": meta.refresh has changed since batch " ~ batch.id ~ " was taken: " ~ (changed | unique | join(", "))
                ~ "; dbt run-operation heartbeat.refresh_reset --args '{model: " ~ run.name
                ~ "}' takes all batches again from the archive") -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Every setting of `meta.refresh`: the types that have it, what it may be, and what it is when left out (`defaults`: of one
    type). A setting within another one has both names, with a dot between. -#}
{% macro refresh_options() -%}
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
    }, **heartbeat.refresh_options_of_key(['key']))) -%}
{%- endmacro %}

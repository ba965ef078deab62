{#- Every setting of `meta.refresh`: the types that have it, what it may be, and what it is when left out. A setting
    within another one has both names, with a dot between. -#}
{% macro refresh_options() -%}
    {%- set keyed, ranged = ['key'], ['timestamp', 'sequence'] -%}
    {%- set all = keyed + ['full', 'none'] + ranged + ['custom'] -%}
    {%- do return({
        'type': {'types': all, 'legal': all, 'is_needed': true},
        'batch_by': {'types': all, 'legal': 'column'},
        'on_duplicate_batch': {'types': all, 'legal': ['skip', 'append', 'fail'], 'default': 'skip'},
        'key': {'types': keyed, 'legal': 'columns', 'is_needed': true},
        'updated_at': {'types': keyed, 'legal': 'column'},
        'format': {'types': ['key', 'timestamp'], 'legal': 'text'},
        'time_zone': {'types': ['key', 'timestamp'], 'legal': 'text'},
        'exclude_from_cdc': {'types': keyed, 'legal': 'columns', 'default': []},
        'hash_columns': {'types': keyed, 'legal': 'columns', 'default': []},
        'tie_breaker': {'types': keyed, 'legal': 'columns', 'default': []},
        'unchanged_newer': {'types': keyed, 'legal': ['touch', 'skip'], 'default': 'touch'},
        'late_arriving': {'types': keyed, 'legal': ['ignore', 'history'], 'default': 'ignore'},
        'null_keys': {'types': keyed, 'legal': ['fail', 'quarantine', 'match'], 'default': 'fail'},
        'on_conflict': {'types': keyed, 'legal': ['pick', 'fail'], 'default': 'pick'},
        'missing_columns': {'types': keyed, 'legal': ['fail', 'as_null'], 'default': 'fail'},
        'count_hub': {'types': keyed, 'legal': 'boolean', 'default': true},
        'deletes.when': {'types': keyed, 'legal': 'text'},
        'deletes.complete': {'types': keyed, 'legal': 'boolean', 'default': false},
        'deletes.max_percent': {'types': keyed, 'legal': 'number'},
        'deletes.mode': {'types': keyed, 'legal': ['hard', 'soft'], 'default': 'hard'},
        'column': {'types': ranged, 'legal': 'column', 'is_needed': true},
        'null_values': {'types': ranged, 'legal': ['fail', 'quarantine'], 'default': 'fail'},
        'range_from': {'types': ranged, 'legal': 'value'},
        'range_to': {'types': ranged, 'legal': 'value'},
        'immutable_where': {'types': ranged, 'legal': 'text'},
        'max_range': {'types': ranged, 'legal': 'number'},
        'max_rewind': {'types': ['sequence'], 'legal': 'number'},
        'delete_condition': {'types': ['custom'], 'legal': 'text', 'is_needed': true},
        'append_filter': {'types': ['custom'], 'legal': 'text'},
        'extracted_at': {'types': ['full', 'key'], 'legal': 'column'},
        'diff_key': {'types': ['full'], 'legal': 'columns'},
        'keep_batches': {'types': ['full'], 'legal': 'number'},
        'max_shrink_percent': {'types': ['full'], 'legal': 'number'},
        'allow_empty': {'types': ['full'], 'legal': 'boolean', 'default': false},
    }) -%}
{%- endmacro %}

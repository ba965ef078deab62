{#- The settings that one type alone has, `key`, as refresh_options gives those of all. -#}
{% macro refresh_options_of_key(types) -%}
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

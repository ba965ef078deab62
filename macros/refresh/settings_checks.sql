{#- Rejects options of other materializations beside meta.refresh, each with its replacement, as dbt would silently
    ignore them. `on_schema_change: append_new_columns` is what a refresh does. -#}
{% macro _refresh_check_config(node) -%}
    {%- set instead = {
        'unique_key': "name the key in meta.refresh.key, with type: key",
        'incremental_strategy': "choose one of the types of meta.refresh.type",
        'incremental_predicates': "leave it out, as the keys of a batch say which files are read",
        'predicates': "leave it out, as the keys of a batch say which files are read",
        'merge_exclude_columns': "name columns that do not count as a change in meta.refresh.exclude_from_cdc",
        'strategy': "choose type: key, whose history has the versions of each key",
        'check_cols': "name the columns that count as a change in meta.refresh.hash_columns",
        'hard_deletes': "say in meta.refresh.deletes which keys are deleted",
        'invalidate_hard_deletes': "say in meta.refresh.deletes which keys are deleted",
        'batch_size': "name the column that distinguishes batches in meta.refresh.batch_by",
        'begin': "name the column that distinguishes batches in meta.refresh.batch_by",
    } -%}
    {%- for name, value in node.config.items() if value is not none -%}
        {%- set is_ours = name in heartbeat._refresh_options() or name in ('refresh', 'deletes') -%}
        {%- set is_merge = name.startswith('not_matched_') or name.partition('_')[0] in ('merge', 'matched', 'skip', 'incremental') -%}
        {%- set is_schema = name == 'on_schema_change' and value not in ('ignore', 'append_new_columns') -%}
        {%- if is_ours or is_merge or is_schema or name in instead -%}
            {%- set advice = "add it to meta.refresh" if is_ours
                else "leave it out: columns that are new are added, and meta.refresh.missing_columns decides on those that are gone"
                if is_schema else instead.get(name, "leave it out, as a refresh writes its own merge") -%}
            {%- do exceptions.raise_compiler_error(
                node.original_file_path ~ ": the config " ~ name ~ " of " ~ node.name ~ " (" ~ value ~ ") has no effect on a model "
                ~ "that is materialized as refresh: " ~ advice) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Rejects invalid settings of a refresh model, each with its legal values. -#}
{% macro _refresh_check_settings(node, given) -%}
    {%- set options = heartbeat._refresh_options() -%}
    {%- set where = node.original_file_path ~ ": meta.refresh of " ~ node.name -%}
    {%- set legal = options.type.legal -%}
    {%- if given.get('type') not in legal -%}
        {%- do exceptions.raise_compiler_error(
            where ~ ": type is " ~ (given.get('type') or 'missing') ~ ", but must be one of " ~ legal | join(', ')) -%}
    {%- endif -%}
    {%- set known = [] -%}
    {%- for name, option in options.items() if given.type in option.types -%}
        {%- do known.append(name) -%}
        {%- if option.is_needed and not given.get(name) -%}
            {%- do exceptions.raise_compiler_error(where ~ ": " ~ given.type ~ " needs the setting " ~ name) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name, value in given.items() -%}
        {%- if name not in known -%}
            {%- do exceptions.raise_compiler_error(
                where ~ ": " ~ name ~ " is not a setting of " ~ given.type ~ ", which has " ~ known | join(', ')) -%}
        {%- endif -%}
        {%- do heartbeat._refresh_check_value(where ~ ": " ~ name, value, options[name].legal) -%}
    {%- endfor -%}
    {%- do heartbeat._refresh_check_together(where, given) -%}
    {%- if (node.config.get('file_format') or 'delta') != 'delta' or (
        target.type == 'spark' and node.config.get('file_format') is none) -%}
        {%- do exceptions.raise_compiler_error(
            where ~ ": file_format is " ~ (node.config.get('file_format') or 'left out, which dbt-spark takes for parquet')
            ~ ", but must be delta") -%}
    {%- endif -%}
{%- endmacro %}

{#- Rejects an invalid value of a setting; `legal` is a list of words, or the name of a kind of value. -#}
{% macro _refresh_check_value(what, value, legal) -%}
    {%- set is_list = value is sequence and value is not string and value is not mapping -%}
    {%- set kinds = {
        'column': (value is string, "the name of one column"),
        'columns': (value is string or is_list and value | reject('string') | list == [], "a list of columns"),
        'text': (value is string, "text"),
        'value': (value is string or value is integer, "text or a whole number"),
        'number': (value is number and value is not boolean and value >= 0, "a number from 0"),
        'boolean': (value is boolean, "true or false"),
    } -%}
    {%- if legal is string -%}
        {%- set fits, wanted = kinds[legal] -%}
    {%- else -%}
        {%- set fits, wanted = (value in legal, "one of " ~ legal | join(', ')) -%}
    {%- endif -%}
    {%- if value is not none and not fits -%}
        {%- do exceptions.raise_compiler_error(what ~ " is " ~ value ~ ", but must be " ~ wanted) -%}
    {%- endif -%}
{%- endmacro %}

{#- Rejects settings of a refresh model that are valid alone, but not together. -#}
{% macro _refresh_check_together(where, given) -%}
    {%- set is_complete, is_late = given.get('deletes.complete'), given.get('late_arriving') == 'history' -%}
    {%- set is_without_history = given.get('history') is false -%}
    {%- set given = dict({'range_from': none, 'range_to': none, 'archive_days': none, 'keep_batches': none}, **given) -%}
    {%- set wrong = [
        (is_complete and given.updated_at, "deletes.complete goes with extracted_at, not with updated_at: every row of a "
            ~ "complete extract is as old as the extract"),
        (is_complete and given.get('deletes.when'), "deletes.complete and deletes.when exclude each other"),
        (given.type == 'key' and given.extracted_at and not is_complete, "extracted_at needs deletes.complete"),
        (given.get('deletes.max_percent') is not none and not is_complete, "deletes.max_percent needs deletes.complete"),
        (given.get('deletes.mode') and not is_complete and not given.get('deletes.when'),
            "deletes.mode needs deletes.when or deletes.complete"),
        (is_late and not given.updated_at, "late_arriving: history needs updated_at, which shows what is late"),
        (is_late and given.unchanged_newer == 'skip', "late_arriving: history needs unchanged_newer: touch, as the hub "
            ~ "would hold a row that the history has closed"),
        (is_late and given.archive_days is not none, "late_arriving: history reads the whole archive, so it does not go with "
            ~ "archive_days"),
        (is_without_history and (is_late or is_complete or given.get('deletes.when')), "history: false goes neither with "
            ~ "deletes nor with late_arriving: history, as the history alone has the deleted keys"),
        (is_without_history and given.keep_batches is not none, "keep_batches sets what the history keeps, so it does not go "
            ~ "with history: false"),
        ((given.range_from is none) != (given.range_to is none), "range_from and range_to go together"),
        (given.range_from is not none and given.batch_by, "range_from does not go with batch_by, as a run has one range"),
    ] -%}
    {%- for is_wrong, sentence in wrong if is_wrong -%}
        {%- do exceptions.raise_compiler_error(where ~ ": " ~ sentence) -%}
    {%- endfor -%}
{%- endmacro %}

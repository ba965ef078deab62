{#- Refuses settings of a refresh model of which each could be meant, but not beside the others. -#}
{% macro refresh_check_together(where, given) -%}
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
        (is_late and not given.updated_at, "late_arriving: history needs updated_at, which says what is late"),
        (is_late and given.unchanged_newer == 'skip', "late_arriving: history needs unchanged_newer: touch, as the hub "
            ~ "would hold a row that the history has closed"),
        (is_late and given.archive_days is not none, "late_arriving: history reads the whole archive, so it does not go with "
            ~ "archive_days"),
        (is_without_history and (is_late or is_complete or given.get('deletes.when')), "history: false goes neither with "
            ~ "deletes nor with late_arriving: history, as the history is what says which keys are deleted"),
        (is_without_history and given.keep_batches is not none, "keep_batches says what the history keeps, so it does not go "
            ~ "with history: false"),
        ((given.range_from is none) != (given.range_to is none), "range_from and range_to go together"),
        (given.range_from is not none and given.batch_by, "range_from does not go with batch_by, as a run has one range"),
    ] -%}
    {%- for is_wrong, sentence in wrong if is_wrong -%}
        {%- do exceptions.raise_compiler_error(where ~ ": " ~ sentence) -%}
    {%- endfor -%}
{%- endmacro %}

{#- Refuses settings of a refresh model of which each could be meant, but not beside the others. -#}
{% macro refresh_check_together(where, given) -%}
    {%- set is_complete, is_late = given.get('deletes.complete'), given.get('late_arriving') == 'history' -%}
    {%- set given = dict({'range_from': none, 'range_to': none}, **given) -%}
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
        ((given.range_from is none) != (given.range_to is none), "range_from and range_to go together"),
        (given.range_from is not none and given.batch_by, "range_from does not go with batch_by, as a run has one range"),
    ] -%}
    {%- for is_wrong, sentence in wrong if is_wrong -%}
        {%- do exceptions.raise_compiler_error(where ~ ": " ~ sentence) -%}
    {%- endfor -%}
{%- endmacro %}

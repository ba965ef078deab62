{#- Refuses options of other materializations beside meta.refresh, each with what to write instead, as dbt would pass over them in
    silence. `on_schema_change: append_new_columns` is what a refresh does. -#}
{% macro refresh_check_config(node) -%}
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
        'batch_size': "name the column that tells batches apart in meta.refresh.batch_by",
        'begin': "name the column that tells batches apart in meta.refresh.batch_by",
    } -%}
    {%- for name, value in node.config.items() if value is not none -%}
        {%- set is_ours = name in heartbeat.refresh_options() or name in ('refresh', 'deletes') -%}
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

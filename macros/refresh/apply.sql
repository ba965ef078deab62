{#- Writes staged batches to history and target table, one commit each, and records it in the batch log. Each step is
    repeatable: staged rows are never classified again, and the history precedes the target table. -#}
{% macro _refresh_complete_batches(run, batches, is_redo) -%}
    {%- set type = run.settings.type -%}
    {%- if type == 'key' -%}
        {%- do heartbeat._refresh_complete_key_batches(run, batches, is_redo) -%}
    {%- elif type == 'full' -%}
        {%- do heartbeat._refresh_apply_full(run, batches) -%}
    {%- elif type == 'custom' and not heartbeat._refresh_is_first(run, batches[0]) -%}
        {%- do heartbeat._refresh_apply_custom(run, batches[0], is_redo) -%}
    {%- else -%}
        {%- do heartbeat._refresh_apply_rows(run, batches) -%}
    {%- endif -%}
    {%- for batch in batches if run.settings.archive_days == 0 -%}
        {#- Its rows are removed by the commit that archives the next batch. -#}
        {%- do batch.update(is_vacuumed=true) -%}
    {%- endfor -%}
    {%- do heartbeat._refresh_record_batches(run, batches, 'COMPLETE') -%}
{%- endmacro %}

{#- Writes the rows of batches to the target table in one commit that replaces what they cover: their ranges, or the
    batches themselves. -#}
{% macro _refresh_apply_rows(run, batches) -%}
    {%- set settings, archive = run.settings, run.tables.batches -%}
    {%- set replaced, sources, is_first = [], [], heartbeat._refresh_is_first(run, batches[0]) -%}
    {%- for batch in batches | reverse -%}
        {#- A later batch owns what it covers. -#}
        {%- set left = ["s_input_id = " ~ batch.id] -%}
        {%- for range in replaced -%}
            {%- do left.append("not (" ~ range ~ ")") -%}
        {%- endfor -%}
        {%- do sources.append(left | join(" and ")) -%}
        {%- if settings.column and batch.range_from is not none -%}
            {%- do replaced.append(heartbeat._refresh_in_range(settings, batch)) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set given = heartbeat._refresh_table_columns(run, archive) | map(attribute='name') | list -%}
    {%- set rows = "(select * from " ~ archive ~ " as input where s_record_status_code is null and (" ~ sources | join(" or ") ~ ")"
        ~ (" and (" ~ settings.append_filter ~ ")" if settings.append_filter else "") ~ ") as given" -%}
    {%- set condition = replaced | join(" or ") or heartbeat._refresh_in_batches(batches) -%}
    {%- do heartbeat._refresh_fill_table(run, 'hub', {'names': given, 'source': rows},
        none if is_first else condition) -%}
{%- endmacro %}

{#- Deletes the target rows that match a custom batch and adds the rows that pass its filter, in one commit: the
    source has each row of the batch once to delete and, where it passes, once to add. An unknown condition deletes
    nothing. -#}
{% macro _refresh_apply_custom(run, batch, is_redo) -%}
    {%- set settings, hub, archive = run.settings, run.tables.hub, run.tables.batches -%}
    {#- If the target table has rows of the batch, its one commit is done. If it had none to add, a second delete changes nothing. -#}
    {%- if is_redo and heartbeat._query_rows("select 1 from " ~ hub ~ " where s_input_id = " ~ batch.id ~ " limit 1") -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set given = heartbeat._refresh_table_columns(run, archive) | map(attribute='name') | map('lower') | list -%}
    {%- set columns, inserted = [], [] -%}
    {%- for column in heartbeat._refresh_table_columns(run, hub) -%}
        {%- do columns.append(column.quoted) -%}
        {%- do inserted.append("input." ~ column.quoted if column.name | lower in given else "cast(null as " ~ column.type ~ ")") -%}
    {%- endfor -%}
    {%- set query -%}
        merge into {{ hub }} as this
        using (
            select input.*, false as s_is_added from {{ archive }} as input where s_input_id = {{ batch.id }}
            union all
            select input.*, true as s_is_added from {{ archive }} as input
            where s_input_id = {{ batch.id }}{{ " and (" ~ settings.append_filter ~ ")" if settings.append_filter }}
        ) as input
        on not input.s_is_added and ({{ settings.delete_condition }})
        when matched then delete
        when not matched and input.s_is_added
            then insert ({{ columns | join(", ") }}) values ({{ inserted | join(", ") }})
    {%- endset -%}
    {%- for _, _, deleted, added in heartbeat._query_rows(query, 4) -%}
        {%- for code, count in {'D': deleted, 'N': added}.items() if count | int -%}
            {%- do batch.code_counts.update({code: count | int}) if batch.code_counts else batch.update(code_counts={code: count | int}) -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro %}

{#- Keeps full batches in the history and replaces the target table by the last of them, except those extracted before
    one that was received earlier. -#}
{% macro _refresh_apply_full(run, batches) -%}
    {%- set tables, ids = run.tables, batches | map(attribute='id') | list -%}
    {%- set given = heartbeat._refresh_table_columns(run, tables.batches) | map(attribute='name') | list -%}
    {%- set of_batches = heartbeat._refresh_in_batches(batches) -%}
    {%- if run.settings.history -%}
        {%- do heartbeat._refresh_fill_table(run, 'history', {'names': given,
            'source': tables.batches ~ " as given where " ~ of_batches}, of_batches) -%}
    {%- endif -%}
    {%- set live = run.batches | selectattr('state', 'equalto', 'COMPLETE') | rejectattr('id', 'in', ids) | list -%}
    {%- set newest = [] -%}
    {%- for batch in batches -%}
        {%- set newer = [] -%}
        {%- for other in live if other.range_to is not none and batch.range_to is not none
            and other.range_to | int > batch.range_to | int -%}
            {%- do newer.append(other.id) -%}
        {%- endfor -%}
        {%- if newer -%}
            {%- do batch.update(code_counts={'O': batch.record_count}) -%}
        {%- else -%}
            {%- do newest.append(batch.id) -%}
        {%- endif -%}
        {%- do live.append(batch) -%}
    {%- endfor -%}
    {%- if newest -%}
        {%- do heartbeat._refresh_replace_target(run, " from " ~ tables.batches ~ " as given where s_input_id = " ~ newest[-1]) -%}
    {%- endif -%}
    {%- set kept = run.settings.keep_batches -%}
    {%- if kept is not none and live | length > kept -%}
        {%- do run_query("delete from " ~ tables.history ~ " where s_input_id not in ("
            ~ (live | map(attribute='id') | sort)[-kept:] | join(", ") ~ ")") -%}
    {%- endif -%}
{%- endmacro %}

{#- Replaces the whole target table by rows of the batch archive, in one commit. A model's run gives it the model's
    columns; an operation keeps the existing ones, and a contract its constraints. -#}
{% macro _refresh_replace_target(run, from_archive) -%}
    {%- set hub = run.tables.hub -%}
    {%- set is_fixed = run.is_operation or run.config.get('contract', {}).enforced -%}
    {%- if load_relation(hub) is none or not is_fixed -%}
        {%- set names = run.columns | map(attribute='quoted') | list + ['s_input_id'] -%}
        {%- do heartbeat._refresh_create_table(run, 'hub', hub, "select " ~ names | join(", ") ~ from_archive) -%}
    {%- else -%}
        {%- set given = heartbeat._refresh_table_columns(run, run.tables.batches) | map(attribute='name') | list -%}
        {#- Not `insert overwrite`: another model may have set dynamic partition overwrite in the session. -#}
        {%- do run_query("insert into " ~ hub ~ " replace where s_input_id >= 0 select "
            ~ heartbeat._refresh_select_items(run, hub, given, 'given') ~ from_archive) -%}
    {%- endif -%}
{%- endmacro %}

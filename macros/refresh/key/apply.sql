{#- Writes staged batches of a key refresh to history and target table, with the least work for their codes: without
    changes no commit is needed, and keys that are all new need no merge. -#}
{% macro _refresh_complete_key_batches(run, batches, is_redo) -%}
    {%- set is_first = heartbeat._refresh_is_first(run, batches[0]) -%}
    {%- set has_flags, codes = run.settings['deletes.when'], [] -%}
    {%- for batch in batches -%}
        {%- do codes.extend(batch.get('code_counts', {}).keys()) -%}
    {%- endfor -%}
    {%- set changes = codes | reject('in', ['U', 'O', 'X', 'R']) | unique | list -%}
    {#- A second attempt does not have the codes, and a flag may delete an unknown key. -#}
    {%- set may_be_any = is_redo or has_flags -%}
    {%- set is_late = run.settings.late_arriving == 'history' and (is_redo or 'O' in codes or 'U' in codes) -%}
    {#- A deleted key is new, too, and has a version to close. -#}
    {%- set are_all_new = changes == ['N'] and not (may_be_any or run.settings['deletes.complete'] or is_late) -%}
    {%- if is_first or are_all_new -%}
        {%- do heartbeat._refresh_fill_key_tables(run, batches) -%}
    {%- else -%}
        {%- if run.settings.history and (may_be_any or changes | reject('equalto', 'S') | list) -%}
            {%- do heartbeat._refresh_apply_key_history(run, batches, is_redo) -%}
        {%- endif -%}
        {%- if is_late -%}
            {%- do heartbeat._refresh_apply_late_rows(run, batches[0]) -%}
        {%- endif -%}
        {%- if may_be_any or changes -%}
            {%- do heartbeat._refresh_apply_key_target(run, batches, is_redo or 'N' in changes) -%}
        {%- endif -%}
    {%- endif -%}
    {%- if is_first or may_be_any or changes -%}
        {%- do heartbeat._refresh_count_target(run, batches) -%}
    {%- endif -%}
{%- endmacro %}

{#- Fills history and target table of a key refresh from batches with new keys only: nothing is closed, touched or
    replaced. -#}
{% macro _refresh_fill_key_tables(run, batches) -%}
    {%- set given = heartbeat._refresh_table_columns(run, run.tables.batches) | map(attribute='name') | list -%}
    {%- set of_batches = heartbeat._refresh_in_batches(batches) -%}
    {%- set rows = run.tables.batches ~ " as given where " ~ of_batches ~ " and " -%}
    {%- set replaced = none if heartbeat._refresh_is_first(run, batches[0]) else of_batches -%}
    {%- set opens = "s_record_status_code = 'N'" -%}
    {%- set is_version = opens -%}
    {%- if run.settings['deletes.when'] -%}
        {%- set is_version = "(" ~ opens ~ " or s_record_status_code = 'U' and s_deleted_flag)" -%}
    {%- endif -%}
    {%- if run.settings.history -%}
        {%- do heartbeat._refresh_fill_table(run, 'history', {'names': given, 'source': rows ~ is_version,
            'values': {'s_effective_from': 'given.s_update_timestamp'}}, replaced) -%}
    {%- endif -%}
    {%- do heartbeat._refresh_fill_table(run, 'hub', {'names': given, 'source': rows ~ opens,
        'values': {'s_seen_input_id': 'given.s_input_id'}}, replaced) -%}
{%- endmacro %}

{#- Merges the rows that count into the target table; a row that these batches have already updated stays. Without new
    keys (`has_new`) no row is added, and Delta need not shuffle the target table. -#}
{% macro _refresh_apply_key_target(run, batches, has_new) -%}
    {%- set columns, given, assigned = [], [], [] -%}
    {%- for column in heartbeat._refresh_table_columns(run, run.tables.hub) -%}
        {%- set value = "change." ~ ("s_hub_code" if column.name == "s_record_status_code" else column.quoted) -%}
        {%- do columns.append(column.quoted) -%}
        {%- do given.append(value) -%}
        {%- do assigned.append(column.quoted ~ " = " ~ value) -%}
    {%- endfor -%}
    {%- set is_new = "this.s_seen_input_id < change.s_seen_input_id" -%}
    {%- set query -%}
        merge into {{ run.tables.hub }} as this
        using (
            {{ heartbeat._refresh_last_rows(run, batches) }}
        ) as change
        on {{ heartbeat._refresh_same_key(run.settings, 'this', 'change') }}
            and {{ heartbeat._refresh_in_bounds(run, batches, 'this') }}
        when matched and {{ is_new }} and change.s_record_status_code = 'S'
            then update set
                s_update_timestamp = change.s_update_timestamp, s_seen_input_id = change.s_seen_input_id,
                s_record_status_code = change.s_hub_code
        when matched and {{ is_new }} and change.s_record_status_code = 'D'
            {%- if run.settings['deletes.mode'] == 'soft' %}
            then update set
                s_update_timestamp = change.s_update_timestamp, s_deleted_flag = true,
                s_input_id = change.s_input_id, s_seen_input_id = change.s_seen_input_id,
                s_record_status_code = change.s_hub_code
            {%- else %}
            then delete
            {%- endif %}
        when matched and {{ is_new }} and change.s_record_status_code in ('N', 'C')
            then update set {{ assigned | join(", ") }}
        {%- if has_new %}
        when not matched and change.s_record_status_code in ('N', 'C')
            then insert ({{ columns | join(", ") }}) values ({{ given | join(", ") }})
        {%- endif %}
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

{#- The result of batches for each key, one row each, as a query over the batch archive: the last row that changes it,
    with the instant and the batch of the last row that counts (`s_seen_input_id`). -#}
{% macro _refresh_last_rows(run, batches) -%}
    {%- set codes = ['N', 'C', 'D'] + (['S'] if run.settings.unchanged_newer == 'touch' else []) -%}
    {%- set by_key = "over (partition by " ~ heartbeat._refresh_column_list(run.settings.key) -%}
    {%- set is_alone = batches | length == 1 -%}
    select *, if(s_seen_input_id > s_input_id, 'S', s_record_status_code) as s_hub_code
    from (
        select
            given.* except (s_update_timestamp),
            {{ "s_update_timestamp" if is_alone else "max(s_update_timestamp) " ~ by_key ~ ")" }} as s_update_timestamp,
            {{ "s_input_id" if is_alone else "max(s_input_id) " ~ by_key ~ ")" }} as s_seen_input_id,
            {{ "1" if is_alone else "row_number() " ~ by_key ~ " order by s_record_status_code = 'S', s_input_id desc)" }} as s_place
        from {{ run.tables.batches }} as given
        where {{ heartbeat._refresh_in_batches(batches) }} and s_record_status_code in ('{{ codes | join("', '") }}')
    )
    where s_place = 1
{%- endmacro %}

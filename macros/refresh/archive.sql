{#- Writes the rows of batches with their codes to the batch archive, in one repeatable commit, and counts them.
    Neither target table nor history changes. -#}
{% macro _refresh_archive_batches(run, batches) -%}
    {%- if run.settings.type == 'key' -%}
        {%- do batches[0].update(is_unique=heartbeat._refresh_has_unique_keys(run, batches)) -%}
        {%- set classified = heartbeat._refresh_classified_rows(run, batches) -%}
    {%- else -%}
        {%- set classified = heartbeat._refresh_staged_rows(run, batches) -%}
    {%- endif -%}
    {%- set given = run.columns | map(attribute='name') | list
        + heartbeat._refresh_system_columns(run.settings, 'batches').keys() | list -%}
    {%- do heartbeat._refresh_fill_table(run, 'batches', {'names': given, 'source': "(" ~ classified ~ ") as given"},
        heartbeat._refresh_replaced_in_archive(run, batches)) -%}
    {%- do heartbeat._refresh_count_codes(run, batches) -%}
{%- endmacro %}

{#- A condition on the batch archive: the rows that the rows of some batches replace, in the same commit: what an
    earlier attempt left of them, or a run that died, or was refused, before it had staged its rows; with
    `archive_days: 0` also whatever no batch needs any more. -#}
{% macro _refresh_replaced_in_archive(run, batches) -%}
    {%- set ids = batches | map(attribute='id') | list -%}
    {%- if run.settings.archive_days == 0 -%}
        {%- set kept = run.batches | selectattr('state', 'in', ['STAGED', 'COMPLETE', 'UNLOADING', 'UNLOADED'])
            | rejectattr('is_vacuumed') | map(attribute='id') | reject('in', ids) | list -%}
        {%- do return("s_input_id not in (" ~ (kept | join(", ") or "0") ~ ")") -%}
    {%- endif -%}
    {%- set claimed = run.batches | selectattr('state', 'equalto', 'CLAIMED') | list -%}
    {%- do return(heartbeat._refresh_in_batches((batches + claimed) | unique(attribute='id') | list)) -%}
{%- endmacro %}

{#- Copies the rows of batches that a reset leaves out to the new batch archive, as received: they may be reloaded. -#}
{% macro _refresh_archive_left_out(run, beside, batches) -%}
    {%- set given = run.columns | map(attribute='name') | list + ['s_input_id', 's_row_num'] -%}
    {%- set query -%}
        insert into {{ beside.tables.batches }}
        select {{ heartbeat._refresh_select_items(run, beside.tables.batches, given, 'given') }}
        from {{ run.tables.batches }} as given
        where given.s_input_id not in ({{ batches | map(attribute='id') | join(", ") or "0" }}) and given.s_row_num is not null
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

{#- Removes the rows of batches from the batch archive, once the batch log records it. Rows of earlier ones that a
    dead process left there are removed with them. -#}
{% macro _refresh_remove_from_archive(run, batches) -%}
    {%- if batches -%}
        {%- for state in batches | map(attribute='state') | unique | list -%}
            {%- set leaving = batches | selectattr('state', 'equalto', state) | list -%}
            {%- for batch in leaving -%}
                {%- do batch.update(is_vacuumed=true) -%}
            {%- endfor -%}
            {%- do heartbeat._refresh_record_batches(run, leaving, state) -%}
        {%- endfor -%}
        {%- do run_query("delete from " ~ run.tables.batches ~ " where "
            ~ heartbeat._refresh_in_batches(run.batches | selectattr('is_vacuumed') | list)) -%}
    {%- endif -%}
{%- endmacro %}

{#- The batches received more than some days ago that still have rows in the batch archive, except those that are not
    yet in the target table, or are being unloaded, and need them. -#}
{% macro _refresh_outdated_batches(run, keep_days) -%}
    {%- set left = run.batches | selectattr('state', 'in', ['COMPLETE', 'UNLOADED']) | rejectattr('is_vacuumed') | list -%}
    {%- if not left -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- set query -%}
        select s_input_id
        from ({{ heartbeat._refresh_newest_logged(run) }})
        where newest.received_at < current_timestamp() - make_dt_interval(0, 0, 0, {{ keep_days * 86400 }})
    {%- endset -%}
    {%- set old = heartbeat._query_rows(query) | map('first') | map('int') | list -%}
    {%- do return(left | selectattr('id', 'in', old) | list) -%}
{%- endmacro %}

{#- Ends an operation that would recompute target table or history from rows that the batch archive no longer has. -#}
{% macro _refresh_require_archive(run, batches, what) -%}
    {%- set missing = batches | selectattr('is_vacuumed') | map(attribute='id') | list -%}
    {%- if missing -%}
        {%- do exceptions.raise_compiler_error(
            "refresh: " ~ what ~ " of " ~ run.name ~ " needs rows of batches " ~ missing | join(", ")
            ~ ", which are no longer in the archive, as refresh_vacuum or archive_days has it"
            ~ ("; to begin again with what the model's query gives, drop its tables" if what == "a reset" else "")) -%}
    {%- endif -%}
{%- endmacro %}

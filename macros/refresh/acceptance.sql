{#- The state of a batch that is skipped: it is empty, a duplicate, or a complete extract older than another one. -#}
{% macro _refresh_skip_reason(run, batch) -%}
    {%- set settings = run.settings -%}
    {%- if batch.record_count == 0 and not settings.allow_empty and not batch.is_declared -%}
        {%- do return('SKIPPED_EMPTY') -%}
    {%- endif -%}
    {%- set live = run.batches | selectattr('state', 'in', ['STAGED', 'COMPLETE']) | list -%}
    {%- if settings.on_duplicate_batch == 'skip' and not settings.batch_by and not run.is_replay
        and heartbeat._refresh_is_duplicate(settings, batch, live) -%}
        {%- do return('SKIPPED_DUPLICATE') -%}
    {%- elif settings['deletes.complete'] and settings.extracted_at and batch.range_to is not none -%}
        {%- for other in live if other.range_to | int > batch.range_to | int -%}
            {%- do return('SKIPPED_OLD') -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- Whether a batch equals a live one that is still fully in effect, so that it would change nothing. A correction may
    be reverted: a batch equal to one whose dates, or whose range, a later one has touched is new data. Where no dates
    limit what a batch may change, that is every later one, except for `none`, of which no batch changes another. -#}
{% macro _refresh_is_duplicate(settings, batch, live) -%}
    {%- for earlier in live if earlier.fingerprint == batch.fingerprint -%}
        {%- set later = live | selectattr('id', 'gt', earlier.id) | list if settings.type != 'none' else [] -%}
        {%- set touching = [] -%}
        {%- for other in later -%}
            {%- set are_apart = earlier.range_from is not none and other.range_from is not none
                and settings.unchanged_newer != 'skip'
                and (other.range_from | int > earlier.range_to | int or other.range_to | int < earlier.range_from | int) -%}
            {%- if not are_apart -%}
                {%- do touching.append(other.id) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if not touching -%}
            {%- do return(true) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(false) -%}
{%- endmacro %}

{#- Why a batch must not reach the target table, as a sentence; none if it may. -#}
{% macro _refresh_refusal(run, batch) -%}
    {%- set settings = run.settings -%}
    {%- set live = run.batches | selectattr('state', 'in', ['STAGED', 'COMPLETE']) | list -%}
    {%- set conflict = heartbeat._refresh_refusal_of_conflict(run, batch) -%}
    {%- if settings.batch_by and batch.batch is none -%}
        {%- do return(batch.record_count ~ " rows have no value in " ~ settings.batch_by
            ~ ", which batch_by names, so that it is not known whether they came before") -%}
    {%- elif settings.on_duplicate_batch == 'fail' and not settings.batch_by and not run.is_replay
        and batch.fingerprint in live | map(attribute='fingerprint') -%}
        {%- do return("it is the same as an earlier one, and on_duplicate_batch is fail") -%}
    {%- elif batch.rejected and settings.null_keys == 'fail' -%}
        {%- do return(batch.rejected ~ " of its " ~ batch.record_count ~ " rows have no value in "
            ~ (settings.key + [settings.updated_at or settings.extracted_at]) | select | join(" or ")
            ~ "; null_keys: quarantine keeps such rows out of the hub") -%}
    {%- elif batch.rejected and settings.null_values == 'fail' -%}
        {%- do return(batch.rejected ~ " of its " ~ batch.record_count ~ " rows have no readable value in "
            ~ settings.column ~ "; null_values: quarantine keeps such rows out of the hub") -%}
    {%- elif conflict is not none -%}
        {%- do return(conflict) -%}
    {%- elif settings.column and batch.range_from is not none -%}
        {%- do return(heartbeat._refresh_refusal_of_range(settings, batch, live)
            or heartbeat._refresh_refusal_of_closed(run, batch)) -%}
    {%- elif settings['deletes.complete'] -%}
        {%- do return(heartbeat._refresh_refusal_of_extract(run, batch)) -%}
    {%- elif settings.type == 'full' and settings.max_shrink_percent is not none and live
        and batch.record_count < live[-1].record_count | int * (100 - settings.max_shrink_percent) / 100 -%}
        {%- do return("it has " ~ batch.record_count ~ " rows after " ~ live[-1].record_count
            ~ ", and max_shrink_percent is " ~ settings.max_shrink_percent) -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- Why a batch with contradicting rows must not reach the target table, as a sentence; none if it may. -#}
{% macro _refresh_refusal_of_conflict(run, batch) -%}
    {%- if run.settings.on_conflict != 'fail' or run.is_replay -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set rows = "(" ~ heartbeat._refresh_staged_rows(run, [batch]) ~ ") as given" -%}
    {%- for _, count in heartbeat._query_rows(heartbeat._refresh_conflicts_sql(run.settings, rows), 2) -%}
        {%- do return(count ~ " of its keys have rows of one instant that differ, and on_conflict is fail; tie_breaker "
            ~ "names the columns that tell which of them holds") -%}
    {%- endfor -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- How many keys of each batch have contradicting rows of one instant, as a query over rows with their system
    columns; where `tie_breaker` orders them, there is no conflict. All deletes of a key are equal. -#}
{% macro _refresh_conflicts_sql(settings, rows) -%}
    select s_input_id, count(*) as conflict_count
    from (
        select s_input_id
        from {{ rows }}
        where not s_record_status_code <=> 'R' and s_row_num is not null
        group by
            s_input_id, {{ heartbeat._refresh_column_list(settings.key + settings.tie_breaker) }},
            s_update_timestamp, s_deleted_flag
        having count(distinct if(s_deleted_flag, null, s_hash)) > 1
    )
    group by s_input_id
{%- endmacro %}

{#- Why a complete extract of keys must not reach the target table, as a sentence; none if it may. -#}
{% macro _refresh_refusal_of_extract(run, batch) -%}
    {%- set settings, most = run.settings, run.settings['deletes.max_percent'] -%}
    {%- if batch.range_from != batch.range_to -%}
        {%- do return("its rows do not agree in " ~ settings.extracted_at
            ~ ", the time of the extract, which is one for all of them") -%}
    {%- elif most is not none and load_relation(run.tables.hub) is not none -%}
        {%- set query -%}
            select count_if(absent.is_absent), count(*)
            from {{ run.tables.hub }} as hub
            left outer join (
                select {{ heartbeat._refresh_column_list(settings.key) }}, true as is_absent
                from ({{ heartbeat._refresh_absent_keys(run, batch) }})
            ) as absent
                on {{ heartbeat._refresh_same_key(settings, 'hub', 'absent') }}
            {{ "where not hub.s_deleted_flag" if settings['deletes.mode'] == 'soft' }}
        {%- endset -%}
        {%- set absent, all = heartbeat._query_rows(query, 2)[0] -%}
        {%- if absent | int > all | int * most / 100 -%}
            {%- do return("it lacks " ~ absent ~ " of " ~ all ~ " keys, which would be deleted, and deletes.max_percent is "
                ~ most) -%}
        {%- endif -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- Why the range of a batch is implausible, as a sentence: one wrong date would replace everything. -#}
{% macro _refresh_refusal_of_range(settings, batch, live) -%}
    {%- set seen = (batch.observed or []) | reject('none') | map('int') | list -%}
    {%- if seen and (seen[0] < batch.range_from or seen[1] > batch.range_to) -%}
        {%- do return("it has rows whose " ~ settings.column ~ " is outside of the range that was declared, from "
            ~ settings.range_from ~ " to before " ~ settings.range_to) -%}
    {%- elif not live -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set unit, word, least = (86400000000, ' days', 366) if settings.type == 'timestamp' else (1, '', none) -%}
    {%- set most = settings.max_range if settings.max_range is not none else least -%}
    {%- set span = batch.range_to | int - batch.range_from | int -%}
    {%- if most is not none and span > most * unit -%}
        {%- do return("its rows span " ~ span // unit ~ word ~ " in " ~ settings.column
            ~ ", all of which they would replace, and max_range is " ~ most) -%}
    {%- endif -%}
    {%- set reached = live | rejectattr('range_to', 'none') | map(attribute='range_to') | map('int') | list -%}
    {%- if settings.max_rewind is defined and settings.max_rewind is not none and reached
        and batch.range_to | int < reached | max - settings.max_rewind -%}
        {%- do return("its greatest " ~ settings.column ~ " is " ~ batch.range_to ~ " after " ~ reached | max
            ~ ", and max_rewind is " ~ settings.max_rewind) -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- Why a batch must not change its range, as a sentence: it would change rows of a closed period. -#}
{% macro _refresh_refusal_of_closed(run, batch) -%}
    {%- set closed, hub = run.settings.immutable_where, run.tables.hub -%}
    {%- if closed is none or run.is_replay or load_relation(hub) is none -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set query -%}
        with given as (
            select {{ heartbeat._refresh_hash(run.columns) }} as s_whole
            from (select *, {{ heartbeat._refresh_derived_columns(run) }} from {{ run.tables.staging }})
            where s_batch <=> {{ heartbeat._sql_literal(batch.batch, 'string') }} and not s_is_rejected and ({{ closed }})
        ),

        held as (
            select {{ heartbeat._refresh_hash(heartbeat._refresh_model_columns(run, hub)) }} as s_whole
            from {{ hub }}
            where {{ heartbeat._refresh_in_range(run.settings, batch) }} and ({{ closed }})
        )

        select count(*)
        from (
            (select s_whole from given except all select s_whole from held)
            union all
            (select s_whole from held except all select s_whole from given)
        )
    {%- endset -%}
    {%- set changed = heartbeat._query_rows(query)[0][0] | int -%}
    {%- if changed -%}
        {%- do return("it would change " ~ changed ~ " rows of the period that immutable_where closes (" ~ closed
            ~ "): leave that period out of the batch, or open it in immutable_where for this run") -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

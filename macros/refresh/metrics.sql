{#- Creates the view of all batches, and recreates it if another version of this package, or other settings, give it
    another text; the view keeps the hash of its text. -#}
{% macro _refresh_create_metrics(run) -%}
    {%- set metrics, query, property = run.tables.metrics, heartbeat._refresh_metrics_sql(run), "heartbeat.text" -%}
    {%- set hash = "md5 " ~ local_md5(query) -%}
    {%- if load_relation(metrics) is not none -%}
        {%- set stored = heartbeat._query_rows("show tblproperties " ~ metrics ~ " ('" ~ property ~ "')", 2) -%}
        {%- if stored and stored[0][1] == hash -%}
            {%- do return('') -%}
        {%- endif -%}
    {%- endif -%}
    {%- do run_query("create or replace view " ~ metrics ~ " tblproperties ('" ~ property ~ "' = '" ~ hash ~ "') as " ~ query) -%}
    {%- do adapter.cache_added(metrics) -%}
{%- endmacro %}

{#- The state of each batch and how many of its rows are still in effect, as a query. -#}
{% macro _refresh_metrics_sql(run) -%}
    {%- set is_key, is_ranged = run.settings.type == 'key', run.settings.type in ('timestamp', 'sequence') -%}
    with batches as (
        {{ heartbeat._refresh_newest_logged(run) }}
    ),
    {%- if is_ranged %}

    effective_ranges as (
        {{ heartbeat._refresh_effective_range_counts(run) }}
    ),
    {%- endif %}

    effective as (
        select s_input_id, count(*) as record_count
        from {{ run.tables.hub }}
        {{ "where not s_deleted_flag" if run.settings.get('deletes.mode') == 'soft' }}
        group by s_input_id
    )

    select
        batches.s_input_id, batches.newest.batch, batches.newest.state, batches.newest.received_at,
        batches.recorded_at, batches.newest.record_count,
        coalesce(effective.record_count, 0) as effective_record_count,
        batches.code_counts, batches.newest.message, batches.newest.intent_id
        {{- ", batches.hub_code_counts, batches.conflict_count" if is_key }}
        {{- ", effective_ranges.ranges as effective_ranges" if is_ranged }}
    from batches
    left outer join effective
        on batches.s_input_id = effective.s_input_id
    {%- if is_ranged %}
    left outer join effective_ranges
        on batches.s_input_id = effective_ranges.s_input_id
    {%- endif %}
{%- endmacro %}

{#- Counts the rows of batches by code (`code_counts`). A batch that is compared with nothing has them in its facts. -#}
{% macro _refresh_count_codes(run, batches) -%}
    {%- set is_key = run.settings.type == 'key' -%}
    {%- for batch in batches -%}
        {%- set counts = {'N': batch.record_count - batch.rejected - batch.deleted, 'R': batch.rejected, 'U': batch.deleted} -%}
        {%- set is_counted = is_key and not (heartbeat._refresh_is_first(run, batch) and batch.is_unique) -%}
        {%- do batch.update(code_counts={}, conflict_count=0 if is_key else none) -%}
        {%- for code, count in counts.items() if count and not is_counted and (is_key or code == 'R') -%}
            {%- do batch.code_counts.update({code: count}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if is_key and not batches[0].code_counts -%}
        {%- set query -%}
            select s_input_id, s_record_status_code, count(*)
            from {{ run.tables.batches }}
            where {{ heartbeat._refresh_in_batches(batches) }} and s_record_status_code is not null
            group by s_input_id, s_record_status_code
            order by s_input_id, s_record_status_code
        {%- endset -%}
        {%- for row in heartbeat._query_rows(query, 3) -%}
            {%- for batch in batches if batch.id == row[0] | int -%}
                {%- do batch.code_counts.update({row[1]: row[2] | int}) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- do heartbeat._refresh_count_conflicts(run, batches) -%}
    {%- elif run.settings.diff_key -%}
        {%- do batches[0].update(code_counts=heartbeat._refresh_count_differences(run, batches[0])) -%}
    {%- endif -%}
{%- endmacro %}

{#- Counts the keys of each batch that have differing rows of one instant (`conflict_count`), if it has a key twice. -#}
{% macro _refresh_count_conflicts(run, batches) -%}
    {%- set doubtful = [] -%}
    {%- for batch in batches if 'X' in batch.code_counts -%}
        {%- do doubtful.append(batch) -%}
    {%- endfor -%}
    {%- if doubtful -%}
        {%- set rows = "(select * from " ~ run.tables.batches ~ " where " ~ heartbeat._refresh_in_batches(doubtful) ~ ") as given" -%}
        {%- for id, count in heartbeat._query_rows(heartbeat._refresh_conflicts_sql(run.settings, rows), 2) -%}
            {%- for batch in doubtful if batch.id == id | int -%}
                {%- do batch.update(conflict_count=count) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{#- How many keys (`diff_key`) are new, changed, unchanged or gone in a full batch compared with the target table that
    it is about to replace. Rows of one key are compared as a set, by the columns that both have. -#}
{% macro _refresh_count_differences(run, batch) -%}
    {%- set settings, hub, counts = run.settings, run.tables.hub, {} -%}
    {%- set there = heartbeat._refresh_column_types(run, hub) if load_relation(hub) is not none else {} -%}
    {%- set left_out = (settings.diff_key + [settings.extracted_at or '']) | map('lower') | list -%}
    {%- set compared = [] -%}
    {%- for column in run.columns if column.name | lower in there and column.name | lower not in left_out -%}
        {%- do compared.append(column) -%}
    {%- endfor -%}
    {%- set keys = heartbeat._refresh_column_list(settings.diff_key) -%}
    {%- set folded = keys ~ ", count(*) as n, sum(cast(" ~ heartbeat._refresh_hash(compared) ~ " as decimal(38, 0))) as content" -%}
    {%- set query -%}
        with given as (
            select {{ folded }} from {{ run.tables.batches }} where s_input_id = {{ batch.id }} group by {{ keys }}
        ),

        known as (
            {{ "select " ~ folded ~ " from " ~ hub ~ " group by " ~ keys if there else "select * from given where false" }}
        )

        select
            case
                when known.n is null then 'N'
                when given.n is null then 'D'
                when known.n = given.n and known.content = given.content then 'U'
                else 'C'
            end as code,
            count(*)
        from given
        full outer join known
            on {{ heartbeat._refresh_same_key({'key': settings.diff_key, 'null_keys': 'match'}, 'given', 'known') }}
        group by 1
        order by 1
    {%- endset -%}
    {%- for code, count in heartbeat._query_rows(query, 2) -%}
        {%- do counts.update({code: count | int}) -%}
    {%- endfor -%}
    {%- do return(counts) -%}
{%- endmacro %}

{#- Counts the rows of the target table by code after batches were applied or unloaded (`hub_code_counts`), unless
    `count_hub` is off: it reads one column of all rows. -#}
{% macro _refresh_count_target(run, batches) -%}
    {%- if run.settings.count_hub -%}
        {%- set counts = {} -%}
        {%- set query = "select s_record_status_code, count(*) from " ~ run.tables.hub ~ " group by 1 order by 1" -%}
        {%- for code, count in heartbeat._query_rows(query, 2) -%}
            {%- do counts.update({code: count}) -%}
        {%- endfor -%}
        {%- for batch in batches -%}
            {%- do batch.update(hub_code_counts=counts) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

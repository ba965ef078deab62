{#- A condition: the rows of two tables have the same key. -#}
{% macro _refresh_same_key(settings, one, other) -%}
    {%- set equals = "<=>" if settings.null_keys == 'match' else "=" -%}
    {%- for column in settings.key -%}
        {{ one }}.{{ adapter.quote(column) }} {{ equals }} {{ other }}.{{ adapter.quote(column) }}{{ " and " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

{#- The keys that a batch affects, as a query: those of its rows, and those that it deleted as absent, which only the
    history has when an earlier batch was unloaded. -#}
{% macro _refresh_keys_of_batch(run, batch) -%}
    select distinct {{ heartbeat._refresh_column_list(run.settings.key) }}
    from {{ run.tables.batches }}
    where s_input_id = {{ batch.id }} and s_record_status_code <> 'R'
    {%- if run.settings['deletes.complete'] %}
    union
    select {{ heartbeat._refresh_column_list(run.settings.key) }} from {{ run.tables.history }} where s_input_id = {{ batch.id }}
    {%- endif %}
{%- endmacro %}

{#- Whether a large batch that is applied alone has unique keys, so that its rows need not be sorted by key. For a
    smaller batch, sorting is as fast as this query. -#}
{% macro _refresh_has_unique_keys(run, batches) -%}
    {%- set batch = batches[0] -%}
    {%- if batches | length > 1 or batch.record_count < var('heartbeat_large_batch', 1000000) | int -%}
        {%- do return(false) -%}
    {%- endif -%}
    {%- set keys = heartbeat._refresh_column_list(run.settings.key) -%}
    {%- set query -%}
        select count(*) - count(distinct {{ "struct(" ~ keys ~ ")" if run.settings.key | length > 1 else keys }})
        from (select *, {{ heartbeat._refresh_derived_columns(run) }} from {{ run.tables.staging }})
        where s_batch <=> {{ heartbeat._sql_literal(batch.batch, 'string') }} and not s_is_rejected
    {%- endset -%}
    {%- do return(heartbeat._query_rows(query)[0][0] | int == 0) -%}
{%- endmacro %}

{#- The key columns whose least and greatest value bound the files of target table and history to read: whole numbers
    and dates, whose text is exact. None where absent keys are deleted, or where NULL is a key. -#}
{% macro _refresh_bounded_keys(run) -%}
    {%- set settings, bounded = run.settings, [] -%}
    {%- if settings.type == 'key' and not settings['deletes.complete'] and settings.null_keys != 'match' -%}
        {%- for column in run.columns if column.name | lower in settings.key | map('lower') -%}
            {%- if modules.re.fullmatch('tinyint|smallint|int|bigint|date|decimal\\([0-9]+,0\\)', column.type) -%}
                {%- do bounded.append({'quoted': column.quoted, 'literal': "date'%s'" if column.type == 'date' else "%s"}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(bounded) -%}
{%- endmacro %}

{#- A condition that limits a table to the files that may have keys of some batches: the key lies between the least
    and the greatest of a batch. True of all rows if these are unknown. -#}
{% macro _refresh_in_bounds(run, batches, qualifier) -%}
    {%- set columns, ranges = heartbeat._refresh_bounded_keys(run), [] -%}
    {%- for batch in batches -%}
        {%- set parts = [] -%}
        {%- for column in columns if batch.get('bounds') -%}
            {%- set least, greatest = batch.bounds[loop.index0] -%}
            {%- if least is not none -%}
                {%- do parts.append(qualifier ~ "." ~ column.quoted ~ " between " ~ column.literal | format(least) ~ " and "
                    ~ column.literal | format(greatest)) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- do ranges.append(parts | join(" and ") or "true") -%}
    {%- endfor -%}
    {%- do return("(" ~ ranges | join(" or ") ~ ")") -%}
{%- endmacro %}

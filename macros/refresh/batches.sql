{#- The staged batches that no earlier run has taken, in order, with their facts. An unloaded batch stays out while it
    is unchanged; a batch whose rows have changed since it was taken causes a warning. -#}
{% macro _refresh_pending_batches(run) -%}
    {%- set taken = {} -%}
    {%- for batch in run.batches if batch.batch is not none and batch.state not in ('FAILED', 'CLAIMED') -%}
        {%- do taken.update({batch.batch: batch}) -%}
    {%- endfor -%}
    {%- set pending, changed, received_at = [], [], heartbeat._refresh_received_at(run) -%}
    {%- set newest = run.batches[-1].id if run.batches else 0 -%}
    {%- for fact in heartbeat._refresh_batch_facts(run) -%}
        {%- set known = taken.get(fact.batch) -%}
        {%- if known is undefined or known is none or (
            known.state == 'UNLOADED' and known.fingerprint != fact.fingerprint) -%}
            {%- do heartbeat._refresh_declare_range(run, fact) -%}
            {%- do fact.update(id=newest + 1 + pending | length, received_at=received_at) -%}
            {%- do pending.append(fact) -%}
        {%- elif known.fingerprint != fact.fingerprint -%}
            {%- do changed.append(known.id ~ " (" ~ fact.batch ~ ")") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if changed -%}
        {%- do exceptions.warn(
            run.name ~ ": " ~ changed | length ~ " batches have other rows now than when they were taken, which stay as they were: "
            ~ changed[:5] | join(", ") ~ (", ..." if changed | length > 5 else "")
            ~ ". Take them as they are now with heartbeat.refresh_unload and a run") -%}
    {%- endif -%}
    {%- do return(pending) -%}
{%- endmacro %}

{#- When batches of this run were received: when it started, but never before the newest batch, even if this driver's
    clock is behind another's. It dates the rows of a key without `updated_at`. -#}
{% macro _refresh_received_at(run) -%}
    {%- set received = [run_started_at] -%}
    {%- for batch in run.batches if batch.get('received_micros') -%}
        {%- do received.append(modules.pytz.utc.localize(modules.datetime.datetime(1970, 1, 1))
            + modules.datetime.timedelta(microseconds=batch.received_micros)) -%}
    {%- endfor -%}
    {%- do return(received | max) -%}
{%- endmacro %}

{#- The facts of each staged batch: its row count, a fingerprint that ignores the order of rows, its range, and how
    many rows are rejected. -#}
{% macro _refresh_batch_facts(run) -%}
    {%- set facts = heartbeat._json_rows(heartbeat._refresh_batch_facts_sql(run)) -%}
    {%- if not facts and (run.is_operation or not run.settings.batch_by) -%}
        {%- do facts.append({'batch': none, 'record_count': 0, 'rejected': 0, 'deleted': 0,
            'fingerprint': none, 'range_from': none, 'range_to': none}) -%}
    {%- endif -%}
    {%- do return(facts) -%}
{%- endmacro %}

{#- The query for the facts of the staged batches, a row of JSON for each, ordered by the value of `batch_by`: as a
    number, 10 comes after 9. -#}
{% macro _refresh_batch_facts_sql(run) -%}
    {%- set range, batch_by = heartbeat._refresh_range_value(run.settings), run.settings.batch_by -%}
    {%- set keys, bounds = [], [] -%}
    {%- for column in heartbeat._refresh_bounded_keys(run) -%}
        {%- do keys.append(column.quoted) -%}
        {%- do bounds.append("array(cast(min(" ~ column.quoted ~ ") as string), cast(max(" ~ column.quoted ~ ") as string))") -%}
    {%- endfor -%}
    with read as (
        select
            {% for key in keys %}{{ key }}, {% endfor %}
            s_batch,
            {{ adapter.quote(batch_by) if batch_by else "null" }} as s_place,
            {% if run.settings.watermark %}{{ adapter.quote(run.settings.watermark) }} as s_watermark, {% endif %}
            {{ heartbeat._refresh_hash(run.columns) }} as s_whole,
            {{ heartbeat._refresh_derived_columns(run) }}
        from {{ run.tables.staging }}
    )
    select to_json(named_struct(
        'batch', s_batch,
        'record_count', count(*),
        'fingerprint', concat_ws(' ', count(*), bit_xor(xxhash64(s_whole, 7)), sum(cast(s_whole as decimal(38, 0)))),
        'range_from', cast(min({{ range }}) as string),
        'range_to', cast(max({{ range }}) as string),
        'bounds', cast(array({{ bounds | join(", ") }}) as array<array<string>>),
        'watermark', {{ heartbeat._refresh_watermark_value(run) }},
        'rejected', count_if(s_is_rejected),
        'deleted', {{ "count_if(s_deleted_flag and not s_is_rejected)" if run.settings.type == 'key' else "0" }}
    ), map('ignoreNullFields', 'false'))
    from read
    group by s_batch
    {{ "order by min(s_place)" if batch_by }}
{%- endmacro %}

{#- The greatest value of a batch in the column that `watermark` names, as SQL text: a whole number, or the
    microseconds of an instant since 1970 followed by `us`. -#}
{% macro _refresh_watermark_value(run) -%}
    {%- set named = run.settings.watermark -%}
    {%- if not named -%}
        {%- do return("cast(null as string)") -%}
    {%- endif -%}
    {%- for column in run.columns if column.name | lower == named | lower -%}
        {%- if column.type in ('tinyint', 'smallint', 'int', 'bigint') or column.type.startswith('decimal') and column.type.endswith(',0)') -%}
            {%- do return("cast(max(s_watermark) as string)") -%}
        {%- elif column.type in ('timestamp', 'timestamp_ntz', 'date') -%}
            {%- do return("cast(unix_micros(max(cast(s_watermark as timestamp))) as string) || ' us'") -%}
        {%- endif -%}
        {%- do exceptions.raise_compiler_error(run.name ~ ": meta.refresh.watermark names " ~ named ~ ", which is " ~ column.type
            ~ ", but must be a whole number, a timestamp or a date: cast it in the model's query") -%}
    {%- endfor -%}
{%- endmacro %}

{#- When a complete extract was taken, as SQL: by its rows, or when it was received. -#}
{% macro _refresh_extract_time(settings, batch) -%}
    {%- if settings.extracted_at -%}
        timestamp_micros({{ batch.range_to }})
    {%- else -%}
        timestamp'{{ batch.received_at }}'
    {%- endif -%}
{%- endmacro %}

{#- One batch of a model by its number, if it is in one of some states. -#}
{% macro _refresh_find_batch(run, input_id, states) -%}
    {%- for batch in run.batches if batch.id == input_id | int -%}
        {%- if batch.state not in states -%}
            {%- do exceptions.raise_compiler_error(
                "refresh: batch " ~ input_id ~ " of " ~ run.name ~ " is " ~ batch.state ~ ", but must be "
                ~ states | join(" or ")) -%}
        {%- endif -%}
        {%- do return(batch) -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error(
        "refresh: " ~ run.name ~ " has no batch " ~ input_id ~ "; it has "
        ~ (run.batches | map(attribute='id') | join(", ") or "none")) -%}
{%- endmacro %}

{#- A condition: the row belongs to one of some batches. -#}
{% macro _refresh_in_batches(batches) -%}
    {%- do return("s_input_id in (" ~ batches | map(attribute='id') | join(", ") ~ ")") -%}
{%- endmacro %}

{#- Whether no earlier batch is in effect, so that target table and history are empty. -#}
{% macro _refresh_is_first(run, batch) -%}
    {%- do return(not run.batches | selectattr('state', 'in', ['COMPLETE', 'STAGED', 'UNLOADING'])
        | selectattr('id', 'lt', batch.id) | list) -%}
{%- endmacro %}

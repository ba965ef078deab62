{#- Deletes the rows of old batches from the archive. Hub, history and ledger stay; what needs those rows is refused from
    then on. Delta keeps the files until its own VACUUM. -#}
{% macro refresh_vacuum(model, keep_days, dry_run=false) -%}
    {%- set load = heartbeat.refresh_operation(model) -%}
    {%- set query -%}
        select distinct batches.s_input_id
        from {{ load.tables.batches }} as batches
        inner join {{ load.tables.metrics }} as metrics
            on batches.s_input_id = metrics.s_input_id
        where metrics.received_at < current_timestamp() - interval {{ keep_days | int }} days
            and metrics.state not in ('STAGED', 'UNLOADING')
    {%- endset -%}
    {%- set ids = heartbeat.rows_of(query) | map('first') | map('int') | sort -%}
    {%- do log(load.name ~ ": " ~ ("would remove" if dry_run else "removing") ~ " the rows of " ~ ids | length
        ~ " batches from the archive, received more than " ~ keep_days ~ " days ago", info=true) -%}
    {%- if ids and not dry_run -%}
        {%- for batch in load.batches if batch.id in ids and not batch.is_vacuumed -%}
            {%- do batch.update(is_vacuumed=true) -%}
            {%- do heartbeat.refresh_record(load, [batch], batch.state) -%}
        {%- endfor -%}
        {%- do run_query("delete from " ~ load.tables.batches ~ " where s_input_id in (" ~ ids | join(", ") ~ ")") -%}
    {%- endif -%}
{%- endmacro %}

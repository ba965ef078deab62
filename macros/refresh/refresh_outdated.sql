{#- The batches that were received more than some days ago and still have their rows in the archive; one that is not in the hub
    so far, or is on its way out of it, needs them. -#}
{% macro refresh_outdated(load, keep_days) -%}
    {%- set left = load.batches | selectattr('state', 'in', ['COMPLETE', 'UNLOADED']) | rejectattr('is_vacuumed') | list -%}
    {%- if not left -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- set query -%}
        select s_input_id
        from ({{ heartbeat.refresh_newest_of_ledger(load) }})
        where newest.received_at < current_timestamp() - make_dt_interval(0, 0, 0, {{ keep_days * 86400 }})
    {%- endset -%}
    {%- set old = heartbeat.rows_of(query) | map('first') | map('int') | list -%}
    {%- do return(left | selectattr('id', 'in', old) | list) -%}
{%- endmacro %}

{#- Gives the range of a batch back to those batches that would hold it without it, in one commit: of each row in the
    archive no later batch may cover the instant. -#}
{% macro refresh_uncover_range(load, batch, live) -%}
    {%- set tables = load.tables -%}
    {%- set within = heartbeat.refresh_in_range(load.settings, batch) -%}
    {%- set covers = [] -%}
    {%- for other in live if other.range_from is not none and other.range_from | int <= batch.range_to | int
        and other.range_to | int >= batch.range_from | int -%}
        {%- do covers.append("(" ~ other.id ~ ", " ~ other.range_from ~ "bd, " ~ other.range_to ~ "bd)") -%}
    {%- endfor -%}
    {%- set given = heartbeat.refresh_shape(load, tables.batches) | map(attribute='name') | list -%}
    {%- set query -%}
        insert into {{ tables.hub }} replace where {{ within }}
        select {{ heartbeat.refresh_values_for(load, tables.hub, given, 'given') }}
        from {{ tables.batches }} as given
        {%- if covers %}
        where s_input_id in ({{ live | map(attribute='id') | join(", ") }})
            and s_record_status_code is null
            and {{ within }}
            and not exists (
                select 1 from values {{ covers | join(", ") }} as later (id, range_from, range_to)
                where later.id > given.s_input_id
                    and {{ heartbeat.refresh_range_value(load.settings) }} between later.range_from and later.range_to
            )
        {%- else %}
        where false
        {%- endif %}
    {%- endset -%}
    {%- do run_query(query) -%}
{%- endmacro %}

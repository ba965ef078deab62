{#- Why a complete extract of keys must not reach the hub, as a sentence; nothing when it may. -#}
{% macro refresh_refusal_of_extract(load, batch) -%}
    {%- set settings, most = load.settings, load.settings['deletes.max_percent'] -%}
    {%- if batch.range_from != batch.range_to -%}
        {%- do return("its rows do not agree in " ~ settings.extracted_at
            ~ ", which says of all of them when the extract was taken") -%}
    {%- elif most is not none and load_relation(load.tables.hub) is not none -%}
        {%- set query -%}
            select count_if(absent.is_absent), count(*)
            from {{ load.tables.hub }} as hub
            left outer join (
                select {{ heartbeat.refresh_names(settings.key) }}, true as is_absent
                from ({{ heartbeat.refresh_absent_keys(load, batch) }})
            ) as absent
                on {{ heartbeat.refresh_same_key(settings, 'hub', 'absent') }}
            {{ "where not hub.s_deleted_flag" if settings['deletes.mode'] == 'soft' }}
        {%- endset -%}
        {%- set absent, all = heartbeat.rows_of(query, 2)[0] -%}
        {%- if absent | int > all | int * most / 100 -%}
            {%- do return("it lacks " ~ absent ~ " of " ~ all ~ " keys, which would be deleted, and deletes.max_percent is "
                ~ most) -%}
        {%- endif -%}
    {%- endif -%}
    {%- do return(none) -%}
{%- endmacro %}

{#- How many keys of each batch have rows of one instant that say different things, as a query over rows with their system
    columns; where `tie_breaker` tells which of them holds, there is no conflict. A delete says nothing but that it is one. -#}
{% macro refresh_conflicts(settings, rows) -%}
    select s_input_id, count(*) as conflict_count
    from (
        select s_input_id
        from {{ rows }}
        where not s_record_status_code <=> 'R' and s_row_num is not null
        group by
            s_input_id, {{ heartbeat.refresh_names(settings.key + settings.tie_breaker) }},
            s_update_timestamp, s_deleted_flag
        having count(distinct if(s_deleted_flag, null, s_hash)) > 1
    )
    group by s_input_id
{%- endmacro %}

{#- What each batch still holds of its range, a row for each piece, as a query over `batches`, those of the ledger: all that
    no batch covers which was received later, both ends included. -#}
{% macro refresh_held_ranges() -%}
    with live as (
        select s_input_id, newest.range_from as starts, newest.range_to + 1 as ends
        from batches
        where newest.state = 'COMPLETE' and newest.range_from is not null
    ),

    pieces as (
        select edge as starts, lead(edge) over (order by edge) as ends
        from (select starts as edge from live union select ends from live)
    ),

    held as (
        select pieces.starts, pieces.ends, max(live.s_input_id) as s_input_id
        from pieces
        left outer join live
            on live.starts <= pieces.starts and live.ends > pieces.starts
        group by pieces.starts, pieces.ends
    ),

    marked as (
        select *, not lag(s_input_id) over (order by starts) <=> s_input_id as is_new from held
    ),

    islands as (
        select *, count_if(is_new) over (order by starts) as island from marked
    )

    select s_input_id, min(starts) as starts, max(ends) - 1 as ends
    from islands
    where s_input_id is not null
    group by s_input_id, island
{%- endmacro %}

{#- The ranges that each batch still holds, with the rows that the hub has in each, as a query over `batches`. -#}
{% macro refresh_effective_ranges(load) -%}
    {%- set is_time = load.settings.type == 'timestamp' -%}
    {%- set value = "timestamp_micros(cast({} as bigint))" if is_time else "{}" -%}
    with held as (
        {{ heartbeat.refresh_held_ranges() }}
    ),

    placed as (
        select s_input_id, {{ "unix_micros(s_timestamp)" if is_time else "s_sequence" }} as place
        from {{ load.tables.hub }}
    ),

    counted as (
        select held.s_input_id, held.starts, held.ends, count(placed.place) as record_count
        from held
        left outer join placed
            on held.s_input_id = placed.s_input_id and placed.place between held.starts and held.ends
        group by held.s_input_id, held.starts, held.ends
    )

    select s_input_id, array_sort(collect_list(struct(
        {{ value.format("starts") }} as range_from, {{ value.format("ends") }} as range_to, record_count))) as ranges
    from counted
    group by s_input_id
{%- endmacro %}

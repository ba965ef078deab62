{#- How many keys (`diff_key`) are new, changed, unchanged or gone in a full batch beside the hub that it is about to replace.
    Rows of one key are compared all together, in whatever order, by the columns that both have. -#}
{% macro refresh_diff(load, batch) -%}
    {%- set settings, hub, counts = load.settings, load.tables.hub, {} -%}
    {%- set there = heartbeat.refresh_types_there(load, hub) if load_relation(hub) is not none else {} -%}
    {%- set left_out = (settings.diff_key + [settings.extracted_at or '']) | map('lower') | list -%}
    {%- set compared = [] -%}
    {%- for column in load.columns if column.name | lower in there and column.name | lower not in left_out -%}
        {%- do compared.append(column) -%}
    {%- endfor -%}
    {%- set keys = heartbeat.refresh_names(settings.diff_key) -%}
    {%- set folded = keys ~ ", count(*) as n, sum(cast(" ~ heartbeat.refresh_hash(compared) ~ " as decimal(38, 0))) as content" -%}
    {%- set query -%}
        with given as (
            select {{ folded }} from {{ load.tables.batches }} where s_input_id = {{ batch.id }} group by {{ keys }}
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
            on {{ heartbeat.refresh_same_key({'key': settings.diff_key, 'null_keys': 'match'}, 'given', 'known') }}
        group by 1
        order by 1
    {%- endset -%}
    {%- for code, count in heartbeat.rows_of(query, 2) -%}
        {%- do counts.update({code: count | int}) -%}
    {%- endfor -%}
    {%- do return(counts) -%}
{%- endmacro %}

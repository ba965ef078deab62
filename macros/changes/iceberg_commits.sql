{#- The newest snapshots of an Iceberg table's main branch, newest first, from the present one back. What they
    did is said as by the sensor (harness/sense/sources/iceberg/classify.py), and the two have to agree. -#}
{% macro iceberg_commits(relation, count) -%}
    {%- set by_id = {} -%}
    {%- set place = namespace(id=none) -%}
    {%- for row in heartbeat.commits_in(heartbeat.iceberg_commits_sql(relation, count)) -%}
        {%- do by_id.update({row.snapshot_id: row}) -%}
        {%- set place.id = row.snapshot_id if row.is_present else place.id -%}
    {%- endfor -%}
    {%- set commits = [] -%}
    {%- for _ in by_id -%}
        {%- if place.id in by_id -%}
            {%- do commits.append(by_id[place.id]) -%}
            {%- set place.id = by_id[place.id].parent_id -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(commits) -%}
{%- endmacro %}

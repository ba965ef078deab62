{#- What became of a Delta table since the first end of a range: its `snapshots`, and what stands in the way of
    reading the range (`lost`), or of reading it from the change data feed (`rewritten`). -#}
{% macro delta_history_since(relation, range) -%}
    {%- set fed = ['WRITE', 'MERGE', 'UPDATE', 'DELETE', 'TRUNCATE', 'COPY INTO', 'STREAMING UPDATE', 'OPTIMIZE',
        'VACUUM START', 'VACUUM END'] -%}
    {%- set newest = heartbeat.rows_of("describe history " ~ relation ~ " limit 1")[0][0] | int -%}
    {%- set count = newest - (range.since if range.since is not none else range.until) | int + 1 -%}
    {%- set found = {'snapshots': []} -%}
    {%- if count > 0 -%}
        {%- for row in run_query("describe history " ~ relation ~ " limit " ~ count).rows -%}
            {%- do found.snapshots.append(row['version'] | int | string) -%}
            {%- set is_after = range.since is not none and row['version'] | int > range.since | int -%}
            {%- set deleted = heartbeat.as_mapping(row['operationMetrics']).get('numDeletedFiles', '0') -%}
            {%- if is_after and row['operation'] == 'VACUUM END' and deleted | string != '0' -%}
                {%- do found.update(lost="VACUUM has deleted files since version " ~ range.since) -%}
            {%- elif is_after and row['operation'] not in fed and row['version'] | int <= range.until | int -%}
                {%- do found.update(rewritten=row['operation']) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(found) -%}
{%- endmacro %}

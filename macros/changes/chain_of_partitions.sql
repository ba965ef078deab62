{#- The partitions that events of a table without snapshots name; each is read whole, as it is now. -#}
{% macro chain_of_partitions(events, table) -%}
    {%- set whole = {'since': none, 'until': none} -%}
    {%- set partitions = [] -%}
    {%- for event in events -%}
        {%- if event.get('partition') is not none -%}
            {%- set values = [] -%}
            {%- for value in event.partition -%}
                {#- A producer may have left the quotes out. -#}
                {%- do values.append(fromjson(value, value)) -%}
            {%- endfor -%}
            {%- do partitions.append(values) -%}
        {%- elif event.tags.partitions is defined and event.tags.partitions_truncated is not defined -%}
            {%- do partitions.extend(fromjson(event.tags.partitions)) -%}
        {%- else -%}
            {%- do return(dict(whole, why="an event is of the table as a whole")) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set levels = table.partition_columns | length -%}
    {%- for values in partitions if values | length != levels -%}
        {%- do return(dict(whole, why="an event names a partition of another number of levels")) -%}
    {%- endfor -%}
    {%- if partitions | length > 200 -%}
        {%- do return(dict(whole, why=partitions | length ~ " partitions changed")) -%}
    {%- endif -%}
    {%- do return(dict(whole, partitions=partitions)) -%}
{%- endmacro %}

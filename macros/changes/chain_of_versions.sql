{#- The range of events of a Delta table: each tells of all versions after the one that it follows. -#}
{% macro chain_of_versions(events) -%}
    {%- set steps = [] -%}
    {%- for event in events -%}
        {%- set step = {'since': event.get('prev_snapshot_id'), 'until': event.get('snapshot_id')} -%}
        {%- set is_version = (step.until | string).isdigit() and (step.since or '0') | string | int(-1) >= 0 -%}
        {%- if not is_version or (step.since is not none and step.since | int >= step.until | int) -%}
            {%- do return({'since': none, 'until': none, 'why':
                "version " ~ step.until ~ " after version " ~ step.since ~ " is none"}) -%}
        {%- endif -%}
        {%- set since = -1 if step.since is none else step.since | int -%}
        {%- do steps.append({'since': since, 'until': step.until | int}) -%}
    {%- endfor -%}
    {%- set reached = namespace(until=none, why=none) -%}
    {%- for step in steps | sort(attribute='since') -%}
        {%- if reached.until is not none and step.since > reached.until and reached.why is none -%}
            {%- set reached.why = "no event tells of version " ~ (reached.until + 1) -%}
        {%- endif -%}
        {%- set reached.until = [reached.until or 0, step.until] | max -%}
    {%- endfor -%}
    {%- set since = steps | map(attribute='since') | min -%}
    {%- set chain = {'since': none if since < 0 else since, 'until': reached.until} -%}
    {%- if since < 0 -%}
        {%- do chain.update(why="no version comes before the first event") -%}
    {%- elif reached.why is not none -%}
        {%- do chain.update(why=reached.why) -%}
    {%- endif -%}
    {%- do return(chain) -%}
{%- endmacro %}

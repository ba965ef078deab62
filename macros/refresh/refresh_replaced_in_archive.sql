{#- A condition on the archive: the rows that give way to those of some batches, in the same commit. That is what an earlier try has
    left of them, and of a run that died, or was refused, before it had staged its rows; with `archive_days: 0` also whatever no
    batch needs any more. -#}
{% macro refresh_replaced_in_archive(load, batches) -%}
    {%- set ids = batches | map(attribute='id') | list -%}
    {%- if load.settings.archive_days == 0 -%}
        {%- set kept = load.batches | selectattr('state', 'in', ['STAGED', 'COMPLETE', 'UNLOADING', 'UNLOADED'])
            | rejectattr('is_vacuumed') | map(attribute='id') | reject('in', ids) | list -%}
        {%- do return("s_input_id not in (" ~ (kept | join(", ") or "0") ~ ")") -%}
    {%- endif -%}
    {%- set claimed = load.batches | selectattr('state', 'equalto', 'CLAIMED') | list -%}
    {%- do return(heartbeat.refresh_of_batches((batches + claimed) | unique(attribute='id') | list)) -%}
{%- endmacro %}

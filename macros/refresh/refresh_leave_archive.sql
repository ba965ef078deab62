{#- Takes the rows of batches out of the archive, once the ledger says so. Rows of earlier ones that a process which died has left
    there go with them. -#}
{% macro refresh_leave_archive(load, batches) -%}
    {%- if batches -%}
        {%- for state in batches | map(attribute='state') | unique | list -%}
            {%- set leaving = batches | selectattr('state', 'equalto', state) | list -%}
            {%- for batch in leaving -%}
                {%- do batch.update(is_vacuumed=true) -%}
            {%- endfor -%}
            {%- do heartbeat.refresh_record(load, leaving, state) -%}
        {%- endfor -%}
        {%- do run_query("delete from " ~ load.tables.batches ~ " where "
            ~ heartbeat.refresh_of_batches(load.batches | selectattr('is_vacuumed') | list)) -%}
    {%- endif -%}
{%- endmacro %}

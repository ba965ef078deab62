{#- The status code of a row beside what is known of its key, as SQL. Newer means not older: of two rows of the same
    instant the one that was received later holds. -#}
{% macro refresh_code(settings, is_first=false, known='known') -%}
    {%- set touches = settings.updated_at -%}
    case
        when ranked.s_is_rejected then 'R'
        when ranked.s_rank > 1 then 'X'
        when {{ "true" if is_first else known ~ ".s_update_timestamp is null" }} then if(ranked.s_deleted_flag, 'U', 'N')
        {%- if not is_first %}
        when ranked.s_deleted_flag and {{ known }}.s_deleted_flag
            or not ranked.s_deleted_flag and not {{ known }}.s_deleted_flag and ranked.s_hash = {{ known }}.s_hash
            then if(ranked.s_update_timestamp > {{ known }}.s_update_timestamp {{ "and false" if not touches }}, 'S', 'U')
        when ranked.s_update_timestamp < {{ known }}.s_update_timestamp then 'O'
        when ranked.s_deleted_flag then 'D'
        when {{ known }}.s_deleted_flag then 'N'
        else 'C'
        {%- endif %}
    end
{%- endmacro %}

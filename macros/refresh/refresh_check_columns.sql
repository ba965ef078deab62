{#- Refuses a model that lacks a column which its settings name, or, with a key, one that earlier batches had: each
    row would count as changed. -#}
{% macro refresh_check_columns(load) -%}
    {%- set names = load.columns | map(attribute='name') | map('lower') | list -%}
    {%- for name, option in heartbeat.refresh_options().items() if option.legal in ('column', 'columns') -%}
        {%- set value = load.settings.get(name) or [] -%}
        {%- for column in ([value] if value is string else value) if column | lower not in names -%}
            {%- do exceptions.raise_compiler_error(
                load.name ~ ": meta.refresh." ~ name ~ " names the column " ~ column ~ ", but the model has "
                ~ names | join(', ')) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if load.settings.missing_columns == 'fail' and load_relation(load.tables.batches) is not none -%}
        {%- for column in heartbeat.refresh_columns_of(load, load.tables.batches) if column.name | lower not in names -%}
            {%- do exceptions.raise_compiler_error(
                load.name ~ ": the model no longer has the column " ~ column.name ~ ", which earlier batches have; "
                ~ "missing_columns: as_null takes it for NULL, and keep leaves in it what the hub has") -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

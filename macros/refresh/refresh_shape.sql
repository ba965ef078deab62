{#- All columns of a table in its order, with name, quoted name and type; asked once in a run: what makes the
    table anew or alters it takes its entry out of `load.shapes`. -#}
{% macro refresh_shape(load, relation) -%}
    {%- if relation | string not in load.shapes -%}
        {%- set shape = [] -%}
        {%- for name, type in heartbeat.rows_of("describe query select * from " ~ relation, 2) -%}
            {%- do shape.append({'name': name, 'quoted': adapter.quote(name), 'type': type}) -%}
        {%- endfor -%}
        {%- do load.shapes.update({relation | string: shape}) -%}
    {%- endif -%}
    {%- do return(load.shapes[relation | string]) -%}
{%- endmacro %}

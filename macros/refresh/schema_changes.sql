{#- Rejects a model that lacks a column which its settings name, or, with a key, one that earlier batches had: every
    row would count as changed. -#}
{% macro _refresh_check_columns(run) -%}
    {%- set names = run.columns | map(attribute='name') | map('lower') | list -%}
    {%- for name, option in heartbeat._refresh_options().items() if option.legal in ('column', 'columns') -%}
        {%- set value = run.settings.get(name) or [] -%}
        {%- for column in ([value] if value is string else value) if column | lower not in names -%}
            {%- do exceptions.raise_compiler_error(
                run.name ~ ": meta.refresh." ~ name ~ " names the column " ~ column ~ ", but the model has "
                ~ names | join(', ')) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if run.settings.missing_columns == 'fail' and load_relation(run.tables.batches) is not none -%}
        {%- for column in heartbeat._refresh_model_columns(run, run.tables.batches) if column.name | lower not in names -%}
            {%- do exceptions.raise_compiler_error(
                run.name ~ ": the model no longer has the column " ~ column.name ~ ", which earlier batches have; "
                ~ "missing_columns: as_null takes it for NULL, and keep leaves in it what the hub has") -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{#- Rejects a model that has widened a column of a target table that does not allow it, since others read the target
    table. -#}
{% macro _refresh_check_types(run) -%}
    {%- set hub, property = run.tables.hub, "delta.enableTypeWidening" -%}
    {%- if run.settings.type == 'full' or load_relation(hub) is none -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set there = heartbeat._refresh_column_types(run, hub) -%}
    {%- for column in run.columns if heartbeat._refresh_widens(there.get(column.name | lower, ''), column.type) -%}
        {#- agate turns the text into a boolean where it can. -#}
        {%- set stored = heartbeat._query_rows("show tblproperties " ~ hub ~ " ('" ~ property ~ "')", 2)[0][1] -%}
        {%- if stored | string | lower != 'true' -%}
            {%- do exceptions.raise_compiler_error(
                run.name ~ ": the column " ~ column.name ~ " is " ~ column.type ~ " now, and "
                ~ there[column.name | lower] ~ " in the table: cast it to that, or set the table property " ~ property
                ~ " of " ~ hub ~ " to true") -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Gives a table the model's new columns and widened types; _refresh_check_types has checked that the target table
    may be widened, and the tables beside it follow. -#}
{% macro _refresh_evolve_columns(run, name) -%}
    {%- set relation = run.tables[name] -%}
    {%- set there = heartbeat._refresh_column_types(run, relation) -%}
    {%- set added, widened = [], [] -%}
    {%- for column in run.columns -%}
        {%- if column.name | lower not in there -%}
            {%- do added.append(column) -%}
        {%- elif heartbeat._refresh_widens(there[column.name | lower], column.type) -%}
            {%- do widened.append(column) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if widened and name != 'hub' -%}
        {%- do run_query("alter table " ~ relation ~ " set tblproperties ('delta.enableTypeWidening' = 'true')") -%}
    {%- endif -%}
    {%- for column in added -%}
        {%- do run_query("alter table " ~ relation ~ " add columns (" ~ column.quoted ~ " " ~ column.type ~ ")") -%}
    {%- endfor -%}
    {%- for column in widened -%}
        {%- do run_query("alter table " ~ relation ~ " alter column " ~ column.quoted ~ " type " ~ column.type) -%}
    {%- endfor -%}
    {%- if added or widened -%}
        {%- do run.shapes.pop(relation | string, none) -%}
    {%- endif -%}
{%- endmacro %}

{#- Enables a column type in an existing table that Delta enables by itself only in a new one. -#}
{% macro _refresh_allow_types(run, relation) -%}
    {%- set there = heartbeat._refresh_column_types(run, relation) -%}
    {%- if 'timestamp_ntz' in run.columns | map(attribute='type') and 'timestamp_ntz' not in there.values() -%}
        {%- do run_query("alter table " ~ relation
            ~ " set tblproperties ('delta.feature.timestampNtz' = 'supported')") -%}
    {%- endif -%}
{%- endmacro %}

{#- Whether a type can hold every value of another one, so that Delta can widen a column in place and the hashes of
    its rows stay the same. -#}
{% macro _refresh_widens(narrow, wide) -%}
    {%- set whole = ['tinyint', 'smallint', 'int', 'bigint'] -%}
    {%- if narrow in whole and wide in whole -%}
        {%- do return(whole.index(narrow) < whole.index(wide)) -%}
    {%- elif narrow.startswith('decimal(') and wide.startswith('decimal(') -%}
        {%- set digits, scale = narrow[8:-1].split(',') | map('int') -%}
        {%- set more_digits, more_scale = wide[8:-1].split(',') | map('int') -%}
        {%- do return(more_scale >= scale and more_digits - more_scale >= digits - scale and narrow != wide) -%}
    {%- endif -%}
    {%- do return((narrow, wide) in [('float', 'double'), ('date', 'timestamp_ntz')]) -%}
{%- endmacro %}

{#- The rows of a run with the columns that the model no longer has, as a query, where `missing_columns: keep` keeps
    the target table's values in them; they are NULL for a new key. Columns that a setting names must be the model's. -#}
{% macro _refresh_with_kept_columns(run, query) -%}
    {%- set settings, hub = run.settings, run.tables.hub -%}
    {%- if settings.missing_columns != 'keep' or load_relation(hub) is none -%}
        {%- do return(query) -%}
    {%- endif -%}
    {%- set there = [] -%}
    {%- for name, _ in heartbeat._query_rows("describe query " ~ query, 2) -%}
        {%- do there.append(name | lower) -%}
    {%- endfor -%}
    {%- for name, option in heartbeat._refresh_options().items() if option.legal in ('column', 'columns') -%}
        {%- set value = settings.get(name) or [] -%}
        {%- do there.extend(([value] if value is string else value) | map('lower')) -%}
    {%- endfor -%}
    {%- set kept = [] -%}
    {%- for column in heartbeat._refresh_model_columns(run, hub) if column.name | lower not in there -%}
        {%- do kept.append("hub." ~ column.quoted) -%}
    {%- endfor -%}
    {%- if not kept -%}
        {%- do return(query) -%}
    {%- endif -%}
    {%- do return("select given.*, " ~ kept | join(", ") ~ " from (" ~ query ~ ") as given left outer join " ~ hub
        ~ " as hub on " ~ heartbeat._refresh_same_key(settings, "given", "hub")) -%}
{%- endmacro %}

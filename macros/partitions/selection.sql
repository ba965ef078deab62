{#- The pending partitions, the oldest first (`pending`), those that this run takes (`chosen`), those that are too old
    (`too_old`), and those in the future (`ahead`). The lookback counts from the newest partition taken, so that a
    standstill of any length is caught up; a partition in the future does not count. -#}
{% macro _select_partitions(partitions, taken, look_back_days, max_batches, now) -%}
    {%- set reached = [] -%}
    {%- for each in partitions if each.value in taken and each.at is not none and each.at <= now -%}
        {%- do reached.append(each.at) -%}
    {%- endfor -%}
    {%- set begin = reached | max - look_back_days * 86400 if reached and look_back_days is not none else none -%}
    {%- set found = {'pending': [], 'too_old': [], 'ahead': []} -%}
    {%- for each in partitions -%}
        {%- set known = taken.get(each.value) -%}
        {%- set is_new = each.value not in taken -%}
        {%- set is_changed = known is not none and known != each.stamp -%}
        {%- set is_old = begin is not none and each.at is not none and each.at < begin -%}
        {%- if is_old and (is_new or is_changed and known.split('/')[0] != each.stamp.split('/')[0]) -%}
            {%- do found.too_old.append(each) -%}
        {%- elif not is_old and (is_new or is_changed) -%}
            {%- do found.pending.append(each) -%}
            {%- if each.at is not none and each.at > now -%}
                {%- do found.ahead.append(each) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do found.update(chosen=found.pending[:max_batches] if max_batches is not none else found.pending) -%}
    {%- do return(found) -%}
{%- endmacro %}

{#- A limit that a variable of the run overrides; `all` means no limit. -#}
{% macro _partition_limit(name, given, least) -%}
    {%- set said = var(name, none) -%}
    {%- set limit = said if said is not none else given -%}
    {%- if limit is none or limit | string | lower == 'all' -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- if not modules.re.fullmatch('[0-9]+', limit | string) or limit | int < least -%}
        {%- do exceptions.raise_compiler_error(
            "pending_partitions: " ~ name ~ " is '" ~ limit ~ "': give a whole number from " ~ least ~ " on, or all") -%}
    {%- endif -%}
    {%- do return(limit | int) -%}
{%- endmacro %}

{#- A condition that is true in some partitions, by their values as literals, so that no other file is read. -#}
{% macro _partition_filter(column, partitions) -%}
    {%- set literals = [] -%}
    {%- set conditions = [] -%}
    {%- for each in partitions -%}
        {%- if each.value is none -%}
            {%- do conditions.append(adapter.quote(column.name) ~ " is null") -%}
        {%- else -%}
            {%- do literals.append(heartbeat._sql_literal(each.value, column.type)) -%}
        {%- endif -%}
    {%- endfor -%}
    {#- Never plain `false`: Spark 4.1 does not analyse a CTE with that above a correlated `exists`. -#}
    {%- if literals or not conditions -%}
        {%- do conditions.append(adapter.quote(column.name) ~ " in (" ~ (literals | join(", ") or "null") ~ ")") -%}
    {%- endif -%}
    ({{ conditions | join(" or ") }})
{%- endmacro %}

{#- Logs what a run takes, what it leaves to the next, and what it does not take by itself. -#}
{% macro _log_selection(name, source, found, look_back_days) -%}
    {%- set chosen = found.chosen | length -%}
    {%- if chosen -%}
        {%- do log(name ~ ": takes " ~ chosen ~ " of " ~ found.pending | length ~ " pending partitions of " ~ source ~ ", from "
            ~ found.chosen[0].value ~ " to " ~ found.chosen[-1].value ~ "; left: " ~ (found.pending | length - chosen),
            info=true) -%}
    {%- else -%}
        {%- do log(name ~ ": no partition of " ~ source ~ " is pending", info=true) -%}
    {%- endif -%}
    {%- if found.too_old -%}
        {%- do exceptions.warn(
            name ~ ": " ~ found.too_old | length ~ " partitions of " ~ source ~ " were never taken as they are now, and are "
            ~ "more than " ~ look_back_days ~ " days older than the newest that was: "
            ~ heartbeat._partition_summary(found.too_old)
            ~ ". Take them with --vars '{look_back_days: all}', or raise look_back_days") -%}
    {%- endif -%}
    {%- if found.ahead -%}
        {%- do exceptions.warn(
            name ~ ": partitions of " ~ source ~ " are in the future: " ~ heartbeat._partition_summary(found.ahead)
            ~ ". They are taken like others, and hold nothing back; look at the clock of who wrote them") -%}
    {%- endif -%}
{%- endmacro %}

{#- The first of some partitions, and how many more there are, as text. -#}
{% macro _partition_summary(partitions) -%}
    {%- set names = [] -%}
    {%- for each in partitions[:5] -%}
        {%- do names.append(each.value | string) -%}
    {%- endfor -%}
    {{ names | join(", ") }}{{ " and " ~ (partitions | length - 5) ~ " more" if partitions | length > 5 }}
{%- endmacro %}

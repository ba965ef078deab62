{#- Which partitions wait, the oldest first (`pending`), and which of them this run takes (`chosen`); which are too old to
    be taken (`too_old`), and which lie in the future (`ahead`). The look-back counts from the newest partition that was
    taken, so that a standstill of any length is made up for; one from the future does not count. -#}
{% macro partitions_to_take(partitions, taken, look_back_days, max_batches, now) -%}
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

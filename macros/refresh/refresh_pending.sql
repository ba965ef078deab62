{#- The staged batches that no earlier run has taken, in order, with what their rows say of them. A batch that was
    unloaded stays out as long as it is the same; one that was taken and has other rows now is told in a warning. -#}
{% macro refresh_pending(load) -%}
    {%- set taken = {} -%}
    {%- for batch in load.batches if batch.batch is not none and batch.state not in ('FAILED', 'CLAIMED') -%}
        {%- do taken.update({batch.batch: batch}) -%}
    {%- endfor -%}
    {%- set pending, changed, received_at = [], [], heartbeat.refresh_receipt(load) -%}
    {%- set newest = load.batches[-1].id if load.batches else 0 -%}
    {%- for fact in heartbeat.refresh_batch_facts(load) -%}
        {%- set known = taken.get(fact.batch) -%}
        {%- if known is undefined or known is none or (
            known.state == 'UNLOADED' and known.fingerprint != fact.fingerprint) -%}
            {%- do heartbeat.refresh_declare_range(load, fact) -%}
            {%- do fact.update(id=newest + 1 + pending | length, received_at=received_at) -%}
            {%- do pending.append(fact) -%}
        {%- elif known.fingerprint != fact.fingerprint -%}
            {%- do changed.append(known.id ~ " (" ~ fact.batch ~ ")") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if changed -%}
        {%- do exceptions.warn(
            load.name ~ ": " ~ changed | length ~ " batches have other rows now than when they were taken, which stay as they were: "
            ~ changed[:5] | join(", ") ~ (", ..." if changed | length > 5 else "")
            ~ ". Take them as they are now with heartbeat.refresh_unload and a run") -%}
    {%- endif -%}
    {%- do return(pending) -%}
{%- endmacro %}

{#- The staged batches that no earlier run has taken, in order, with what their rows say of them. A batch that was
    unloaded stays out as long as it is the same. -#}
{% macro refresh_pending(load) -%}
    {%- set taken = {} -%}
    {%- for batch in load.batches if batch.batch is not none and batch.state != 'FAILED' -%}
        {%- do taken.update({batch.batch: batch}) -%}
    {%- endfor -%}
    {%- set pending = [] -%}
    {%- set newest = load.batches[-1].id if load.batches else 0 -%}
    {%- for fact in heartbeat.refresh_batch_facts(load) -%}
        {%- set known = taken.get(fact.batch) -%}
        {%- if known is undefined or known is none or (
            known.state == 'UNLOADED' and known.fingerprint != fact.fingerprint) -%}
            {%- do heartbeat.refresh_declare_range(load, fact) -%}
            {%- do fact.update(id=newest + 1 + pending | length, received_at=run_started_at) -%}
            {%- do pending.append(fact) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(pending) -%}
{%- endmacro %}

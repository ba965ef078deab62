{#- When batches of this run were received: when it started, but never before the batch that was received last, even if the clock of
    this driver is behind that of another. The rows of a key without `updated_at` are dated by it. -#}
{% macro refresh_receipt(load) -%}
    {%- set received = [run_started_at] -%}
    {%- for batch in load.batches if batch.get('received_micros') -%}
        {%- do received.append(modules.pytz.utc.localize(modules.datetime.datetime(1970, 1, 1))
            + modules.datetime.timedelta(microseconds=batch.received_micros)) -%}
    {%- endfor -%}
    {%- do return(received | max) -%}
{%- endmacro %}

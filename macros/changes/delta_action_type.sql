{#- The type of one line of a commit file, with the fields that say what became of the data. -#}
{% macro delta_action_type() -%}
    {%- set file -%}
        struct<path: string, partitionValues: map<string, string>, dataChange: boolean,
        deletionVector: struct<cardinality: bigint>>
    {%- endset -%}
    struct<
        add: {{ file }},
        remove: {{ file }},
        commitInfo: struct<operation: string, inCommitTimestamp: bigint, operationParameters: map<string, string>>
    >
{%- endmacro %}

-- one row: how far the ledgers are compacted into the state tables
{# A literal, which the optimizer puts in the place of a subquery: so files of older rows are skipped. #}
select cast({{ compacted_through(ref('ledger_ticks')) }} as bigint) as folded_through

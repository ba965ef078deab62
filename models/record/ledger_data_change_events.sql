-- one row per data-change event
{{ ledger_rows() }}

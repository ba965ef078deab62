-- one row per time that the triggers were asked
{{ ledger_rows() }}

-- one row per evaluation of the triggers
{{ ledger_rows() }}

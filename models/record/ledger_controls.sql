-- one row per change of a control row
{{ ledger_rows() }}

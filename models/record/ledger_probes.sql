-- one row per look that changed something; an idle look leaves none
{{ ledger_rows() }}

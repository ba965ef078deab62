-- one row per step of a run's life: intended, started, ended, given back
{{ ledger_rows() }}

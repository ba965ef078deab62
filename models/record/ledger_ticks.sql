-- one row per tick that recorded something; an idle tick leaves none
{{ ledger_rows() }}

-- one row per tick that recorded something; an idle tick leaves none
{{ without_rows() }}

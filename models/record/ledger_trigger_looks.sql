-- one row per evaluation of the triggers
{{ without_rows() }}

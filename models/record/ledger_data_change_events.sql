-- one row per data-change event
{{ without_rows() }}

-- one row per change of a control row
{{ without_rows() }}

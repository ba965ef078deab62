-- one row per job and tick in which the reasons why it may not run changed
{{ without_rows() }}

-- one row per probe that changed something; an idle probe leaves none
{{ without_rows() }}

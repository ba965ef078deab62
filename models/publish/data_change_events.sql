-- one row per change, as its newest data-change event describes it
{{ data_change_events_between(none, none) }}

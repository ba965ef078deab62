-- one row per step of a run's life: intended, started, ended, requeued
{{ without_rows() }}

"""Makes Heartbeat's data-change events available to Airflow, which it imports only when used."""

"""Lets Airflow ask Heartbeat what has changed. Importing this alone imports nothing of Airflow."""

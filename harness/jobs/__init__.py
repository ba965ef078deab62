"""Starts Databricks jobs exactly once and follows their runs."""

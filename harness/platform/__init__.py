"""The ground: clock, files, text, logs, dbt, Spark, Databricks.

In and out: no row of ours; what any program of this kind needs.
Imports ``errors`` only.
"""

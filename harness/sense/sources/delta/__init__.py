"""Probes Delta tables by their logs, without a Spark job for a table where nothing is new.

In: tables by path or name, with cursors. Out: one change for each commit that changed data.
Imports ``sense`` and the packages below it.
"""

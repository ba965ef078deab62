"""Probes Iceberg tables by their metadata alone.

In: tables by folder or catalog, with cursors. Out: one change for each snapshot with data.
Imports ``sense`` and the packages below it.
"""

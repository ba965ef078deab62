"""Probes tables of the Hive metastore by their partitions and the files in them.

In: table names with cursors. Out: one change for each partition that changed.
Imports ``sense`` and the packages below it.
"""

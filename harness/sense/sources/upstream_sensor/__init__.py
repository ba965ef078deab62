"""Probes the sensors that other data products publish.

In: sensors with cursors. Out: one change for each sensor whose job processed new data.
Imports ``sense`` and the packages below it.
"""

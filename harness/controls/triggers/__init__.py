"""Reads and checks ``seeds/event_triggers.csv``; what a trigger means is decided in SQL.

In: the file. Out: typed rows, and one sentence per error.
Imports the findings and cells of ``controls``, and ``events``.
"""

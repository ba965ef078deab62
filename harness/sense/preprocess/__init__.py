"""Checks preprocess queries and runs them over new rows.

In: the text of a query and the rows of a probe. Out: whether the rows are an event.
Imports ``config``, ``platform`` and the types of ``sense``; no source.
"""

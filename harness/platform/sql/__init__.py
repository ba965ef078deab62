"""The port for statements: what is plain SQL runs in a Spark session or in a SQL warehouse.

In: SQL text and parameters. Out: rows as dictionaries of Python values. Imports ``errors`` and
``platform``.
"""

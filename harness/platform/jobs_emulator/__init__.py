"""A Jobs API on this machine: the real SDK calls it, and its runs are local commands.

In: HTTP requests of the Jobs API. Out: responses as Databricks words them, and processes.
Imports ``platform`` and ``errors``.
"""

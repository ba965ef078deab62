"""Follows the runs of earlier ticks and applies the messages of operators and jobs.

In: followed runs, messages of the inbox, the Jobs API. Out: rows of the ledger of runs.
Imports ``fire`` to send an intent again, ``controls`` and the packages below them.
"""

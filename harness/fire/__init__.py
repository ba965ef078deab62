"""Starts jobs: a durable intent, a call with an idempotency token, the outcome.

In: the trigger set. Out: rows of the ledger of runs.
Imports ``events``, ``store`` and ``platform``; no other step.
"""

"""The data-change event: its type, validation, order, query, and the payload of a run.

In: text from producers and rows of the ledger. Out: checked events.
Imports ``store`` and ``platform``; no step.
"""

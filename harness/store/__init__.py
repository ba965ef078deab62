"""The ledgers and the state directory: Delta tables on a local disk, or tables of a catalog.

In: frozen rows and messages. Out: rows, work lists, and answers to common questions.
Imports ``platform`` and ``errors``; no step.
"""

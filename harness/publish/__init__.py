"""Publishes the tick: public tables, and compaction of the ledgers into state tables.

In: the models after firing. Out: tables for people, and the tick's row.
Imports ``settle`` for planned retries, ``controls`` and the packages below them.
"""

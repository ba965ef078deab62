"""Evaluates event triggers; the decision itself is SQL in ``models/decide``.

In: the trigger models and the state. Out: events of satisfied slots, and rows of the triggers.
Imports ``record``, ``controls`` and the packages below them.
"""

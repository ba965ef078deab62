"""Admits one writer at a time: a lock locally, a lease with fencing tokens in a workspace.

In: a state directory or a catalog. Out: a lock that is checked before each effect.
Imports ``store`` and ``platform``.
"""

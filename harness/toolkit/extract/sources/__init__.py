"""The sources of an extract, one module for each kind.

In: how far bronze has come. Out: the newer rows as one batch.
Imports ``changes``, ``sense``, ``config`` and ``platform``.
"""

"""Schema drift between an extract and bronze.

In: the columns of both. Out: a plan, and a bronze table that follows it.
Imports ``platform`` and the other modules of ``extract``.
"""

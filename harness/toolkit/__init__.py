"""What jobs and notebooks import: ``acquired``, ``processed``, ``changes`` and ``extract``.

In: the parameters of a run, tables and sources. Out: events, changed rows, rows of bronze.
Imports the packages below the command line; no other package imports this one but ``cli``.
"""

from harness.toolkit.notebook import acquired, processed

__all__ = ["acquired", "processed"]

"""One tick, the loop of ticks, the state between them, and housekeeping.

In: the context and the state of the last tick. Out: a report, and the state of the next one.
Imports every step and the context; only the command line and its questions import it.
"""

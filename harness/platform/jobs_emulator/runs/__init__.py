"""The runs of the emulator: their states, processes and database.

In: job settings and starts. Out: runs that begin and end.
Imports ``platform`` and the errors of the emulator's API.
"""

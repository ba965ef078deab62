"""Probes files: those of a folder, of a pattern, or the markers of their writers.

In: places with cursors. Out: one change for each new file.
Imports ``sense`` and the packages below it.
"""

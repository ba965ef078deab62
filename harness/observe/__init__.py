"""Informs people and systems that watch: alarms, lineage, metrics.

It imports what is below it in the layers of ``pyproject.toml``, and nothing else of the harness.
"""

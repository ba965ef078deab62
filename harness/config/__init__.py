"""Reads ``heartbeat.yml``: settings, connections, and secrets by reference.

In: a YAML file and the environment. Out: frozen settings, or every problem with its line.
Imports ``platform`` and ``errors``.
"""

"""Renders answers as lines and tables for a terminal.

In: results of a tick, a command or ``inspect``. Out: text on a console.
Imports the types that it renders, and no command.
"""

"""Answers what people ask about an installation: status, explanation, history.

In: the tables and the state directory, read without a JVM or a lock. Out: frozen answers.
Imports everything below the command line; renders nothing.
"""

"""Examines a whole installation without changing it: one module for each concern.

In: an installation, as far as it can be read. Out: findings, the worst first.
Imports what it examines; renders nothing.
"""

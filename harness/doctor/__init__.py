"""Examines a whole installation without changing it: one module per concern."""

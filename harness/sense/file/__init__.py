"""Senses files: where they are, what is remembered of them, which of them are news."""

"""Senses what other data products say of their own sensors."""

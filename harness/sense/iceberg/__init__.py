"""Senses Iceberg tables: where their metadata is, and what its snapshots say of the data."""

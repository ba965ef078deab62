"""The pipeline's jobs: each reads what changed according to its events, and writes one table."""

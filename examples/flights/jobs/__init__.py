"""The jobs of the pipeline: each reads what its events say has changed, and writes one table."""

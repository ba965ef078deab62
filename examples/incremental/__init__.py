"""A Spark job that reads only what changed."""

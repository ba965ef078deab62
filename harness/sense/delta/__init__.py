"""Senses Delta tables by their logs, without a Spark job for a table where nothing is new."""

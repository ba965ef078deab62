"""Senses tables of the Hive metastore: their partitions, and the files in them."""

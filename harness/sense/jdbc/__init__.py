"""Senses what a database can be asked over JDBC: tables by the largest value of a column."""

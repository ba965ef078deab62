"""Probes tables of databases over JDBC by the largest value of a column.

In: relations with cursors, many in one statement. Out: one change for each relation that grew.
Imports ``sense`` and the packages below it.
"""

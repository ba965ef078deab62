"""The report: one static, self-contained HTML page over the tables, for people without a terminal.

It is read-only, and needs no JVM and no server.
"""

"""Spark on this machine or a cluster: Java, jars, the session, the metastore.

In: ``profiles.yml`` and the environment. Out: one session.
Imports ``platform`` and ``errors``.
"""
